#pragma once
// Gradient work in libtorch's own kernels, with the host's bits on every device whose additions and
// products of fp32 and fp64 are those of IEEE 754, and whose running sum along an outer dimension
// goes in order, as that of processors and of CUDA does. No other kernel here reduces anything.
//
// Tensors are flat and contiguous; temporaries are bounded by pieces of kPieceElements, but for
// largest(), which looks at all elements at once.
//
// Thread contract: launches onto the calling thread's current stream. libtorch's exceptions go
// through.

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace sluice::model {

inline constexpr std::int64_t kPieceElements = 1 << 20;  // a multiple of a block of the norm
// Temporaries take so much an element, at most: of a piece; of what largest() looks at, and more of
// what it finds.
inline constexpr std::int64_t kPieceElementBytes = 64;
inline constexpr std::int64_t kLargestElementBytes = 24;
inline constexpr std::int64_t kLargestFoundBytes = 48;

// Sums of squares of `gradient` (16 bits or fp32) over the blocks of
// core/optimizer/gradient_stats.h, one fp64 value a block. One that is not finite has an element
// that is not.
void put_block_sums(const at::Tensor& gradient, const at::Tensor& sums);

// residual = gradient x scale + residual, rounded once (core/compress/error_feedback.h).
void accumulate_into(const at::Tensor& residual, const at::Tensor& gradient, float scale);

// Indices (int64) of the k largest of fp32 values in the order of core/compress/selection.h,
// ascending.
at::Tensor largest(const at::Tensor& values, std::int64_t k);

}  // namespace sluice::model
