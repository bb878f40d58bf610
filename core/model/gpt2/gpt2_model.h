#pragma once
// The implementation of Gpt2. Blocks and the last LayerNorm go through autograd, one layer's graph
// at a time: its input is cut off from the layer below, so a layer's backward walks that layer
// only. Embedding, loss and the tied table are differentiated by hand.
//
// Thread contract: as TrainableModel.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/model/gpt2/block.h"
#include "core/model/gpt2/compute_threads.h"
#include "core/model/gpt2/flat_views.h"
#include "core/model/gpt2/gpt2.h"
#include "core/model/gpt2/tied_gradient.h"

namespace sluice::model {

class Gpt2Model final : public Gpt2 {
 public:
  Gpt2Model(const ModelShape& shape, const ModelOptions& options,
            std::span<std::uint16_t> parameters);

  const FlatLayout& layout() const override { return layout_; }
  Float16Kind parameter_kind() const override { return options_.compute; }
  std::span<std::uint16_t> parameters() override { return parameters_; }

  Status set_batch(int micro_step, const TokenBatch& batch) override;
  Status forward(LayerId layer, int micro_step) override;
  Status backward(LayerId layer, int micro_step, double gradient_scale,
                  const LayerGradient& into) override;
  double loss(int micro_step) const override;
  Result<double> evaluate(const TokenBatch& batch) override;
  Result<std::string> sample_text(const SampleOptions& options) override;

 private:
  // What a layer keeps from forward to backward. With recompute, `output` stays empty.
  struct KeptLayer {
    at::Tensor input;
    at::Tensor output;
  };
  struct HeadChunk {  // of at most kHeadChunkTokens tokens
    std::int64_t first = 0;
    std::int64_t count = 0;
  };
  struct MicroBatch {
    WindowShape window;
    std::vector<std::int64_t> inputs;
    std::vector<std::int64_t> targets;
    std::vector<KeptLayer> layers;  // blocks and head; index = LayerId (0 stays empty)
    std::vector<HeadChunk> head_chunks;
    // Room for those of all tokens, the same in each step; undefined with recompute. From forward
    // to backward of the head it holds the logits, then their gradient.
    at::Tensor logits;
    at::Tensor log_sums;          // of the logits, one a token
    at::Tensor stream;            // the last layer's output, cut off from its graph
    at::Tensor stream_gradient;   // of the last layer that went backward, with respect to its input
    std::int32_t next_layer = 0;  // that may go forward; layer count once all have
    double loss = 0;
  };

  bool keeps() const { return options_.activations == Activations::keep; }
  LayerId head() const { return LayerId{layout_.layer_count() - 1}; }
  Status check_batch(const TokenBatch& batch) const;
  MicroBatch& micro_batch(int micro_step);

  MicroBatch begin(const TokenBatch& batch, const at::Tensor& room_for_logits) const;
  at::Tensor run_layer(LayerId layer, const at::Tensor& x, WindowShape window) const;
  at::Tensor logits_of(const MicroBatch& micro, const HeadChunk& chunk,
                       const at::Tensor& normed) const;

  // Loss of the last LayerNorm's output.
  double mean_loss(MicroBatch& micro, const at::Tensor& normed) const;
  void forward_embedding(MicroBatch& micro) const;
  void forward_block(LayerId layer, MicroBatch& micro) const;
  void forward_head(MicroBatch& micro) const;
  void backward_head(MicroBatch& micro, double gradient_scale, GradientWriter& writer);
  void backward_block(LayerId layer, MicroBatch& micro, GradientWriter& writer) const;
  void backward_embedding(MicroBatch& micro, GradientWriter& writer);
  KeptLayer take_layer(LayerId layer, MicroBatch& micro) const;
  void propagate(const KeptLayer& layer, std::span<const at::Tensor> parameters,
                 const at::Tensor& output_gradient, MicroBatch& micro,
                 GradientWriter& writer) const;

  at::Tensor next_token_logits(std::span<const std::int64_t> context) const;

  ModelShape shape_;
  ModelOptions options_;
  FlatLayout layout_;
  std::span<std::uint16_t> parameters_;
  FlatViews views_;
  ComputeThreads threads_;
  TiedGradient tied_gradient_;
  std::vector<MicroBatch> micro_batches_;
};

}  // namespace sluice::model
