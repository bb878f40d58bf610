#pragma once
// The functions of tensors that a family is, in libtorch: StackModel (stack_model.h) calls them
// layer by layer and does all else. Whether autograd watches is the caller's affair; embeddings and
// logits are differentiated by hand.
//
// Thread contract: constants; their functions on the compute thread.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "core/model/model_shape.h"
#include "core/model/torch/dropout.h"
#include "core/model/torch/flat_views.h"
#include "core/model/torch/gradient_writer.h"
#include "core/model/torch/position_table.h"
#include "core/model/window_shape.h"

namespace sluice::model {

struct PositionBias;

// The context that a layer is computed in, beside its input and its parameters.
struct LayerContext {
  const ModelShape& shape;
  WindowShape window;
  const std::vector<at::Tensor>& constants;  // TorchArchitecture::constants
  std::int64_t block = 0;                    // 0: the first
  const Dropout& dropout;
  at::Tensor documents = {};  // BatchNumbers::documents()
  // Null, but for a model with two stacks (two_stacks.h); the encoder's output is a decoder's
  // alone.
  const PositionBias* bias = nullptr;
  const at::Tensor* encoded = nullptr;
  std::int64_t blocks_before = 0;  // the encoder's, for a decoder's block

  // A place of the layer where values are dropped; `in_layer` tells its places apart.
  DropPlace drop_place(double share, std::uint32_t in_layer) const {
    return {share, blocks_before + block + 1, in_layer};
  }
  at::Tensor dropped(const at::Tensor& rows, std::uint32_t in_layer) const {
    return dropout.of_rows(rows, drop_place(shape.dropout.rows, in_layer));
  }
};

struct TorchArchitecture {
  // The table of tokens by name: the embedding's first tensor.
  const char* token_table = "";
  // The output table where it is the head's own, by name: the head's last tensor, but for a bias.
  const char* output_table = nullptr;
  // The bias on the logits, by name: the head's last tensor. Null: there is none.
  const char* output_bias = nullptr;

  // Tensors that layers read beside parameters, for sequences of at most `sequence` tokens, of the
  // parameters' type where they compute. Null: none.
  std::vector<at::Tensor> (*constants)(const ModelShape& shape, std::int64_t sequence,
                                       const at::TensorOptions& like) = nullptr;
  // (batch * sequence, hidden) from batch * sequence token numbers. What ModelShape::dropout drops
  // of it is dropped behind this.
  at::Tensor (*embed)(const at::Tensor& tokens, const LayerViews& w, const TokenPlaces& places,
                      const ModelShape& shape);
  // The gradients of the sum of what was looked up and of the norm behind it, whose tensors are the
  // embedding's last, from that of the embedding's result. Null: there is no norm.
  std::vector<at::Tensor> (*embed_norm_backward)(const at::Tensor& gradient,
                                                 const at::Tensor& tokens, const LayerViews& w,
                                                 const TokenPlaces& places,
                                                 const ModelShape& shape) = nullptr;
  // The gradients of the embedding's tensors behind the token table, but for a norm's, in flat
  // order, from that of the sum. Null: there are none.
  void (*embed_backward)(const at::Tensor& gradient, const LayerViews& w, const TokenPlaces& places,
                         GradientWriter& writer) = nullptr;
  // x and the result are (batch * sequence, hidden).
  at::Tensor (*block)(const at::Tensor& x, const LayerViews& w, const LayerContext& context);
  // A block of the second stack. Null: there is one stack.
  at::Tensor (*decoder_block)(const at::Tensor& x, const LayerViews& w,
                              const LayerContext& context) = nullptr;
  // The rows whose products with the output table are the logits. `x` of a model that classifies
  // has the first token of each window alone.
  at::Tensor (*head)(const at::Tensor& x, const LayerViews& w, const ModelShape& shape);
};

}  // namespace sluice::model
