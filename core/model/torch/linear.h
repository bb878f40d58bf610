#pragma once
// Linear layers of the families, with what an adapter adds where they have one (core/model/lora.h).
//
// Thread contract: as libtorch's.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "core/model/torch/flat_views.h"

namespace sluice::model {

// The order of a matrix: torch's Linear, or Hugging Face's Conv1D.
enum class MatrixOrder : std::uint8_t { out_in, in_out };

// y = x W^T + b of NAME.weight and, where there is one, NAME.bias; plus scale (x A^T) B^T of
// NAME.lora_A.weight and NAME.lora_B.weight. Each product is rounded to the parameters' type, and
// so is the sum.
at::Tensor linear(const at::Tensor& x, const LayerViews& w, const std::string& name,
                  MatrixOrder order = MatrixOrder::out_in);

}  // namespace sluice::model
