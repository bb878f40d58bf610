// residual = stored_float(fma(gradient, scale, residual)) in vectors.

#include <cstdint>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/compress/error_feedback_simd.cpp"
#include "hwy/foreach_target.h"
// The order matters: what follows is compiled once for each target.
#include "base/check.h"
#include "core/compress/error_feedback.h"
#include "core/optimizer/simd-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::compress {
namespace HWY_NAMESPACE {

#if SLUICE_EXACT_SIMD
namespace hn = hwy::HWY_NAMESPACE;

// Returns how many elements it has done: all but the last few.
std::size_t accumulate_for_target(const FeedbackInput& input) {
  const hn::ScalableTag<float> d;
  const std::size_t lanes = hn::Lanes(d);
  const auto scale = hn::Set(d, input.scale);
  // Copies: a vector store may alias whatever has an address.
  const float* gradients = input.gradient.data();
  float* residuals = input.residual.data();
  const std::size_t count = input.gradient.size();
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto gradient = hn::LoadU(d, gradients + i);
    const auto residual = hn::LoadU(d, residuals + i);
    const auto accumulated = hn::MulAdd(gradient, scale, residual);
    hn::StoreU(optimizer::HWY_NAMESPACE::stored(d, accumulated), d, residuals + i);
  }
  return i;
}

#else

std::size_t accumulate_for_target(const FeedbackInput&) { return 0; }

#endif  // SLUICE_EXACT_SIMD

}  // namespace HWY_NAMESPACE
}  // namespace sluice::compress
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice::compress {

HWY_EXPORT(accumulate_for_target);

void accumulate_residual(const FeedbackInput& input) {
  CHECK_EQ(input.gradient.size(), input.residual.size());
  const std::size_t done = HWY_DYNAMIC_DISPATCH(accumulate_for_target)(input);
  const std::size_t left = input.gradient.size() - done;
  accumulate_residual_reference(
      input.part(static_cast<std::int64_t>(done), static_cast<std::int64_t>(left)));
}

}  // namespace sluice::compress
#endif
