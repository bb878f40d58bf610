#pragma once
// Error feedback: what a step did not send is not lost but added to the next step's gradient.
//
//   accumulated = fma(gradient, scale, residual)       one rounding, NaN as one NaN (stored_float)
//   the kept elements of `accumulated` are sent
//   residual    = 0 where an element was kept, else accumulated
//
// `scale` is what makes gradients of different steps comparable (1 / loss scale); the residual then
// outlives a change of the loss scale. The selectors do all of this in the pass that looks at the
// gradient first, and work on the residual array from then on.
//
// Thread contract: free functions, safe on disjoint ranges, in the default floating-point mode.

#include <cstdint>
#include <span>

#include "core/compress/selection.h"

namespace sluice::compress {

// Arrays of one length. The residual is read and written.
struct FeedbackInput {
  std::span<const float> gradient;
  float scale = 1;
  std::span<float> residual;

  FeedbackInput part(std::int64_t first, std::int64_t count) const {
    const auto from = static_cast<std::size_t>(first);
    const auto length = static_cast<std::size_t>(count);
    return {.gradient = gradient.subspan(from, length),
            .scale = scale,
            .residual = residual.subspan(from, length)};
  }
};

// The selectors accumulate N elements at once and look at them while they are in the
// first-level cache.
inline constexpr std::int64_t kFeedbackBlockElements = 2048;

// residual = accumulated. The definition, and the fast kernel (bit-equal).
void accumulate_residual_reference(const FeedbackInput& input);
void accumulate_residual(const FeedbackInput& input);

// residual = 0 at the indices that were kept.
void clear_residual(std::span<const std::uint32_t> kept_indices, std::span<float> residual);

}  // namespace sluice::compress
