#pragma once
// RMSNorm in one operation: libtorch's own is several on a processor, each of which keeps a tensor.
//
// Thread contract: the compute thread.

#include <ATen/core/Tensor.h>

namespace sluice::model {

// The last dimension of `x` over its root mean square, in fp32 and rounded once, times `weight`
// (Hugging Face's order). Kept for backward are x, a number a row in fp32, and the result before
// the weight.
at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double epsilon);

}  // namespace sluice::model
