#pragma once
// The functions of tensors that a family is, in libtorch: StackModel (stack_model.h) calls them
// layer by layer and does all else. Whether autograd watches is the caller's affair; embeddings and
// logits are differentiated by hand.
//
// Thread contract: constants; their functions on the compute thread.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

#include "core/model/model_shape.h"
#include "core/model/torch/flat_views.h"
#include "core/model/torch/gradient_writer.h"
#include "core/model/window_shape.h"

namespace sluice::model {

struct TorchArchitecture {
  // The ends of the names of each kind of layer's tensors, in flat order: the order of the views
  // that the functions below are given. The embedding's first is the token table.
  std::span<const char* const> embedding_names;
  std::span<const char* const> block_names;
  std::span<const char* const> head_names;

  // (batch * sequence, hidden) from batch * sequence token numbers.
  at::Tensor (*embed)(const at::Tensor& tokens, LayerViews embedding, WindowShape window);
  // The gradients of the embedding's tensors behind the token table, in flat order, from that of
  // its result.
  void (*embed_backward)(const at::Tensor& gradient, LayerViews embedding, WindowShape window,
                         GradientWriter& writer);
  // x and the result are (batch * sequence, hidden).
  at::Tensor (*block)(const at::Tensor& x, LayerViews block, WindowShape window,
                      const ModelShape& shape);
  // The rows whose products with the token table are the logits.
  at::Tensor (*head)(const at::Tensor& x, LayerViews head);
};

}  // namespace sluice::model
