#pragma once
// libtorch's name for our 16-bit formats.
//
// Thread contract: free function.

#include <ATen/core/Tensor.h>

#include "base/float16.h"

namespace sluice::model {

inline at::ScalarType dtype_of(Float16Kind kind) {
  return kind == Float16Kind::bf16 ? at::kBFloat16 : at::kHalf;
}

}  // namespace sluice::model
