#pragma once
// One transformer block of GPT-2, and its last LayerNorm. Plain functions of tensors; whether
// autograd watches is the caller's affair.
//
// Thread contract: the compute thread.

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>

#include "core/model/gpt2/flat_views.h"
#include "core/model/window_shape.h"

namespace sluice::model {

// x and the result are (batch * sequence, hidden).
at::Tensor block_forward(const at::Tensor& x, const BlockTensors& weights, WindowShape window,
                         std::int64_t heads);

at::Tensor final_norm_forward(const at::Tensor& x, const std::array<at::Tensor, 2>& weights);

// Token rows plus position rows: (batch * sequence, hidden) from batch * sequence token numbers.
at::Tensor embedding_forward(const at::Tensor& tokens, const FlatViews& views, WindowShape window);

}  // namespace sluice::model
