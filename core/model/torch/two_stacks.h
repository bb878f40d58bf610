#pragma once
// The tensors that several blocks of an encoder and a decoder read beside the stream, and their
// gradients, which are sums over those blocks: the biases of positions, made from tables in the
// embedding, and the encoder's output. The encoder's last norm stands between the two stacks, and
// is computed here; its weight is the embedding's, too.
//
// Sums are in fp32. Those over blocks of one micro-batch are its own (StackBorder); those of the
// embedding's tensors are of all micro-batches, wait here for the embedding's backward, and are put
// with the first one that comes to it, as the tied table's are (output_gradient.h).
//
// Thread contract: as TrainableModel.

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "core/model/model_factory.h"
#include "core/model/torch/biased_attention.h"
#include "core/model/torch/dropout.h"
#include "core/model/torch/flat_views.h"
#include "core/model/torch/gradient_writer.h"
#include "core/model/torch/torch_architecture.h"

namespace sluice::model {

// A micro-batch between the encoder's last block and the decoder's first.
struct StackBorder {
  at::Tensor output;            // of the encoder's last block
  at::Tensor encoded;           // behind its norm and dropout, in memory of the run; watched
  at::Tensor encoded_gradient;  // fp32, over the decoder's blocks that have gone backward
  at::Tensor lookup_gradient;   // of what the decoder looked up
};

class TwoStacks {
 public:
  TwoStacks(const ModelShape& shape, const ModelOptions& options, const at::TensorOptions& like);

  // Storages of no layer.
  std::vector<at::Tensor> shared_tensors() const;
  // Room for a micro-batch's StackBorder::encoded.
  at::Tensor make_room() const;

  // From the embedding's tables, as they are now.
  void make_biases(const LayerViews& embedding);
  // Puts the encoder's output aside; `room` is make_room()'s.
  void cross(StackBorder& border, const at::Tensor& output, const LayerViews& embedding,
             const at::Tensor& room, const Dropout& dropout) const;

  bool is_of_decoder(LayerId layer) const;
  bool is_first_of_decoder(LayerId layer) const;
  const PositionBias& bias_of(LayerId layer) const;
  // The tensors beside its own that a block's graph reads and whose gradients something is trained
  // by, and the sums of these. The tables are the embedding's, which adapters leave as it is.
  std::vector<at::Tensor> read_by(LayerId layer, const StackBorder& border) const;
  void add(LayerId layer, std::span<const at::Tensor> gradients, StackBorder& border);
  // Whether something is trained in the encoder, or below it.
  bool goes_back_to_encoder() const { return trains_encoder_; }
  // The gradient of the encoder's output, from that of all the decoder.
  at::Tensor cross_back(StackBorder& border, const LayerViews& embedding, const Dropout& dropout);

  // Forgets what a step that was given up has left. Launches nothing.
  void drop() { is_pending_ = false; }
  // The gradients of the embedding's tensors behind the token table.
  void put(GradientWriter& writer);

 private:
  struct Stack {
    at::Tensor buckets;       // of each distance, a number
    at::Tensor is_in_bucket;  // (buckets, distances), fp32: 1 or 0
    PositionBias bias;
    at::Tensor gradient;  // of bias.by_distance
  };
  Stack make_stack(std::int64_t longest, BiasSees sees) const;
  void begin_sums();
  DropPlace drop_place() const { return {.share = shape_.dropout.output, .in_layer = 2}; }

  const ModelShape shape_;
  bool trains_tables_;
  bool trains_encoder_;
  std::int64_t encoder_rows_;  // of a micro-batch, at most
  at::TensorOptions like_;
  std::array<Stack, 2> stacks_;
  at::Tensor norm_gradient_;
  bool is_pending_ = false;  // the sums hold something that no put() has taken
};

}  // namespace sluice::model
