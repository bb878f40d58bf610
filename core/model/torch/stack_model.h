#pragma once
// A model in libtorch: an embedding, a stack of blocks, and a head whose output table is the token
// table or one of its own. Its family's functions (torch_architecture.h) compute the layers;
// micro-batches, kept tensors, recomputation, logits and the loss are made here, the same for each
// family.
//
// Where adapters alone are trained (core/model/lora.h), the model's own parameters ask for no
// gradients, and lie all along where it computes.
//
// Blocks and head go through autograd, one layer's graph at a time: its input is cut off from the
// layer below, so a layer's backward walks that layer only. Embedding, loss and the output table
// are differentiated by hand.
//
// Thread contract: as TrainableModel.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/model/layer_places.h"
#include "core/model/model_factory.h"
#include "core/model/torch/batch_numbers.h"
#include "core/model/torch/compute_threads.h"
#include "core/model/torch/flat_views.h"
#include "core/model/torch/head_loss.h"
#include "core/model/torch/output_gradient.h"
#include "core/model/torch/saved_blocks.h"
#include "core/model/torch/table_pieces.h"
#include "core/model/torch/torch_architecture.h"
#include "core/model/torch/torch_layers.h"
#include "core/model/torch/two_stacks.h"

namespace sluice::model {

class StackModel final : public TrainableModel, public TorchLayers, private KeptBlocks {
 public:
  // `device`: where it computes. On one with memory of its own a layer is there once it is bound.
  StackModel(const TorchArchitecture& architecture, const ModelShape& shape,
             const ModelOptions& options, const ParameterSpan& parameters, at::Device device,
             io::PinnedMemory* pinned);

  const FlatLayout& layout() const override { return layout_; }
  ParameterKind parameter_kind() const override { return options_.compute; }
  ParameterSpan parameters() override { return parameters_; }

  Status set_batch(int micro_step, const TokenBatch& batch, BatchUse use) override;
  Status forward(LayerId layer, int micro_step) override;
  Status backward(LayerId layer, int micro_step, double gradient_scale,
                  const LayerGradient& into) override;
  double loss(int micro_step) const override;
  std::optional<std::int64_t> right_answers(int micro_step) const override;
  Status choose_activations(const LayerActivations& activations) override;
  KeptBlocks* kept_blocks() override { return this; }

  void bind(LayerId layer, const at::Tensor& flat) override;
  FlatLayout base_layout() const override;
  void bind_base(LayerId layer, const at::Tensor& flat) override;
  void launch_forward(LayerId layer, int micro_step) override;
  void launch_backward(LayerId layer, int micro_step, double gradient_scale,
                       const at::Tensor& into) override;
  const NumbersPlaces& numbers_places(int micro_step) const override;
  const at::Tensor& loss_sum(int micro_step) const override;
  const at::Tensor& loss_sum_in_host_memory(int micro_step) const override;
  SavedBlocks& saved_blocks(LayerId layer, int micro_step) override;

  // Always computed in host memory; only the layer that is computed, and the first, need be there.
  // Errors: ErrorCode::config for tokens that the vocabulary does not have.
  Result<std::unique_ptr<TextWriter>> write_text(const SampleOptions& options);

 private:
  Result<std::span<const KeptBlock>> kept(LayerId layer, int micro_step) override;
  Status release(LayerId layer, int micro_step) override;
  Status release_device(LayerId layer, int micro_step) override;
  Result<std::span<const KeptBlock>> make_room(LayerId layer, int micro_step) override;
  Status restore(LayerId layer, int micro_step) override;
  void forget(LayerId layer, int micro_step) override;

  // The tensors that a layer keeps from forward to backward; no `output` where it is recomputed.
  struct KeptLayer {
    at::Tensor input;
    at::Tensor output;
  };
  struct HeadChunk {  // of at most head_chunk_tokens()
    std::int64_t first = 0;
    std::int64_t count = 0;
  };
  // Between the layers that a table is cut into.
  struct PieceRows {
    at::Tensor normed;           // the head's output, which the pieces of the output table read
    at::Tensor normed_gradient;  // fp32: their products are added
    at::Tensor token_sums;       // BatchNumbers::sum_by_token() of the embedding's gradient
  };
  // The memory that a micro-batch has for all of the run.
  struct Room {
    NumbersPlaces numbers;
    // All tokens' logits, of each layer that makes any; undefined where it is recomputed.
    std::vector<at::Tensor> logits;
    at::Tensor encoded;              // of two stacks: TwoStacks::make_room()
    at::Tensor loss_in_host_memory;  // fp64, as the next
    at::Tensor loss_sum;             // of a classifier with the number of right answers behind it
  };
  struct MicroBatch {
    TokenPlaces places() const { return {window, numbers.document_pieces(), numbers.segments()}; }

    WindowShape window;
    WindowShape targets;  // as `window`, but for two stacks
    BatchUse use = BatchUse::training;
    BatchNumbers numbers;
    Dropout dropout;
    std::vector<KeptLayer> layers;  // blocks and head; index = LayerId (0 stays empty)
    // The part of it that leaves memory. Outlives the layer's KeptLayer where a write of it does.
    std::vector<SavedBlocks> saved;
    std::vector<HeadChunk> head_chunks;
    // In the room for them. From forward to backward of their layer the logits, then their
    // gradient.
    std::vector<at::Tensor> logits;
    LossRows loss_rows;           // no `target_logits` where the output table is whole
    PieceRows pieces;             // where tables are cut
    at::Tensor stream;            // the last layer's output, cut off from its graph
    at::Tensor stream_gradient;   // of the last layer that went backward, with respect to its input
    StackBorder border;           // of two stacks
    std::int32_t next_layer = 0;  // that may go forward; layer count once all have
  };

  void take_base_along();
  // Whether something is trained in the layer or below it, and below it.
  bool goes_backward(LayerId layer) const {
    return layout_.layer(layer).first + layout_.layer(layer).count > 0;
  }
  bool passes_gradient_on(LayerId layer) const { return layout_.layer(layer).first > 0; }

  Activations choice_of(LayerId layer) const { return options_.activations.of(layer); }
  bool keeps_logits(LayerId layer) const { return !is_recomputed(choice_of(layer)); }
  LayerPlaces places() const { return layer_places(shape_); }
  LayerId head() const { return places().head(); }
  // Of MicroBatch::logits, for a layer that makes any.
  std::size_t logits_place(LayerId layer) const {
    return places().is_output(layer)
               ? static_cast<std::size_t>(index_of(layer) - index_of(head()) - 1)
               : 0;
  }
  MicroBatch& micro_batch(int micro_step);
  const Room& room(int micro_step) const;
  Room make_room() const;
  void make_room_for_logits(Room& room) const;

  LayerContext context_of(LayerId layer, const MicroBatch& micro) const;
  at::Tensor run_layer(LayerId layer, const at::Tensor& x, const FlatViews& views,
                       const LayerContext& context) const;
  DropPlace embedding_drop_place() const { return {.share = shape_.dropout.embedding}; }
  DropPlace lookup_drop_place() const {  // of what a decoder looks up
    return {.share = shape_.dropout.embedding, .in_layer = 1};
  }
  DropPlace output_drop_place() const {
    return {.share = shape_.dropout.output, .layer = shape_.layers + 1};
  }
  bool has_own_output_table() const { return shape_.has_own_output_table(); }
  bool has_output_bias() const { return architecture_.output_bias != nullptr; }
  const at::Tensor& output_table(const FlatViews& views, LayerId layer) const;
  at::Tensor logits_of(LayerId layer, const MicroBatch& micro, const HeadChunk& chunk,
                       const at::Tensor& normed) const;

  // Loss of the head's rows, summed over the tokens.
  void sum_loss(MicroBatch& micro, const at::Tensor& normed, at::Tensor& loss_sum) const;
  void forward_embedding(LayerId layer, MicroBatch& micro);
  void begin_decoder(MicroBatch& micro, const Room& room) const;
  void forward_block(LayerId layer, MicroBatch& micro) const;
  at::Tensor run_watched(LayerId layer, const at::Tensor& input, MicroBatch& micro) const;
  template <typename Function>
  auto at_blocks(LayerId layer, int micro_step, Function&& function);
  void forward_head(MicroBatch& micro, at::Tensor& loss_sum) const;
  void backward_head(MicroBatch& micro, double gradient_scale, GradientWriter& writer);
  void backward_block(LayerId layer, MicroBatch& micro, GradientWriter& writer);
  void backward_embedding(MicroBatch& micro, GradientWriter& writer);
  // Pieces of tables that are cut (stack_tables.cpp).
  AnswerRange answers_of(LayerId layer) const {
    return {places().first_row(layer), places().row_count(layer)};
  }
  TablePiece embedding_piece(LayerId layer, const FlatViews& views) const;
  void forward_output(LayerId layer, MicroBatch& micro, at::Tensor& loss_sum) const;
  void backward_output(LayerId layer, MicroBatch& micro, double gradient_scale,
                       GradientWriter& writer);
  void backward_cut_head(MicroBatch& micro, GradientWriter& writer);
  void backward_embedding_piece(LayerId layer, MicroBatch& micro, GradientWriter& writer);
  KeptLayer take_layer(LayerId layer, MicroBatch& micro) const;
  // `shared`: tensors besides that the layer's graph reads. Their gradients.
  std::vector<at::Tensor> propagate(LayerId layer, const KeptLayer& kept,
                                    std::span<const at::Tensor> parameters,
                                    const at::Tensor& output_gradient, MicroBatch& micro,
                                    GradientWriter& writer,
                                    std::span<const at::Tensor> shared = {}) const;

  class Text;

  const TorchArchitecture& architecture_;
  ModelShape shape_;
  ModelOptions options_;
  FlatLayout layout_;  // of what is trained
  ParameterSpan parameters_;
  std::optional<StagingMemory> staging_;  // beside a device
  BlockMemory block_memory_;
  FlatViews host_views_;
  FlatViews views_;  // where it computes: the same in host memory
  ComputeThreads threads_;
  OutputGradient output_gradient_;
  std::optional<TwoStacks> two_stacks_;
  std::vector<Room> rooms_;
  std::vector<MicroBatch> micro_batches_;
};

// `parameters` is the caller's flat array, which outlives the model; so does `pinned`, the
// host's memory beside a device, null in host memory. Errors: ErrorCode::config for what the shape
// does not have; those of libtorch.
Result<std::unique_ptr<StackModel>> make_stack_model(const TorchArchitecture& architecture,
                                                     const ModelShape& shape,
                                                     const ModelOptions& options,
                                                     const ParameterSpan& parameters,
                                                     at::Device device, io::PinnedMemory* pinned);

}  // namespace sluice::model
