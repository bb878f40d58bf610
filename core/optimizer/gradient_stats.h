#pragma once
// Overflow check and global norm, before the update (D4). Sums are made in double over fixed blocks
// of kNormBlockElements of a layer, in order, so that the norm does not depend on subgroups,
// devices, threads or SIMD width.
//
// Thread contract: free functions, safe on disjoint ranges.

#include <cstdint>

#include "base/parameter_span.h"
#include "core/optimizer/update_rule.h"

namespace sluice::optimizer {

struct GradientStats {
  double sum_of_squares = 0;  // infinite or NaN (always the same NaN) if not `finite`
  bool finite = true;         // false if any element is infinite or NaN
};

inline constexpr std::int64_t kNormBlockElements = 1 << 14;
constexpr std::int64_t norm_block_count(std::int64_t element_count) {
  return (element_count + kNormBlockElements - 1) / kNormBlockElements;
}

// The statistics of `element_count` gradients. Within a block, 16 interleaved double accumulators
// (element i goes to i % 16, each fma(g, g, sum) in double), then added pairwise
// 16 -> 8 -> 4 -> 2 -> 1; blocks are added in order.
GradientStats gradient_stats_reference(const void* gradient, GradientKind kind,
                                       std::int64_t element_count);
GradientStats gradient_stats(const void* gradient, GradientKind kind, std::int64_t element_count);

// `before` and then one more block of at most kNormBlockElements. A layer may be cut anywhere
// between blocks, and its blocks measured on any threads, if the results are added here in block
// order.
GradientStats add_block(const GradientStats& before, const GradientStats& block);

// 16-bit to fp32 and back, bit-equal to base/float16.h; used to stage gradients and parameters for
// the wire.
void widen(const std::uint16_t* from, Float16Kind kind, float* to, std::int64_t element_count);
void narrow(const float* from, Float16Kind kind, std::uint16_t* to, std::int64_t element_count);

// The parameters of as many master weights: rounded to 16 bits, or in fp32 the same.
void put_parameters(const float* master_weights, const ParameterSpan& into);

// accumulator = stored_float(accumulator + widened gradient): gradient accumulation over
// micro-batches, in fp32.
void accumulate(const std::uint16_t* gradient, Float16Kind kind, float* accumulator,
                std::int64_t element_count);

}  // namespace sluice::optimizer
