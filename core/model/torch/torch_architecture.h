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
#include "core/model/torch/flat_views.h"
#include "core/model/torch/gradient_writer.h"
#include "core/model/window_shape.h"

namespace sluice::model {

// The context that a layer is computed in, beside its input and its parameters.
struct LayerContext {
  const ModelShape& shape;
  WindowShape window;
  const std::vector<at::Tensor>& constants;  // TorchArchitecture::constants
  std::int64_t block = 0;                    // 0: the first
};

struct TorchArchitecture {
  // The table of tokens by name: the embedding's first tensor.
  const char* token_table = "";
  // The output table where it is the head's own, by name: the head's last tensor.
  const char* output_table = nullptr;

  // Tensors that layers read beside parameters, for sequences of at most `sequence` tokens, of the
  // parameters' type where they compute. Null: none.
  std::vector<at::Tensor> (*constants)(const ModelShape& shape, std::int64_t sequence,
                                       const at::TensorOptions& like) = nullptr;
  // (batch * sequence, hidden) from batch * sequence token numbers.
  at::Tensor (*embed)(const at::Tensor& tokens, const LayerViews& w, WindowShape window);
  // The gradients of the embedding's tensors behind the token table, in flat order, from that of
  // its result. Null: there are none.
  void (*embed_backward)(const at::Tensor& gradient, const LayerViews& w, WindowShape window,
                         GradientWriter& writer) = nullptr;
  // x and the result are (batch * sequence, hidden).
  at::Tensor (*block)(const at::Tensor& x, const LayerViews& w, const LayerContext& context);
  // The rows whose products with the output table are the logits.
  at::Tensor (*head)(const at::Tensor& x, const LayerViews& w, const ModelShape& shape);
};

}  // namespace sluice::model
