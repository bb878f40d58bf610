#pragma once
// libtorch's name for the formats of parameters.
//
// Thread contract: free function.

#include <ATen/core/Tensor.h>

#include "base/parameter_span.h"

namespace sluice::model {

inline at::ScalarType dtype_of(ParameterKind kind) {
  switch (kind) {
    case ParameterKind::bf16:
      return at::kBFloat16;
    case ParameterKind::fp16:
      return at::kHalf;
    case ParameterKind::fp32:
      break;
  }
  return at::kFloat;
}

}  // namespace sluice::model
