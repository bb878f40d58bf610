// The overflow check costs nothing extra here: a square of an fp32 value is below 2^257, so the sum
// of finite squares is a finite double, and an infinite or NaN element makes the sum infinite or
// NaN.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/optimizer/gradient_stats_simd.cpp"
#include "hwy/foreach_target.h"
// The order matters: what follows is compiled once for each target.
#include "core/optimizer/gradient_stats.h"
#include "core/optimizer/simd-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::optimizer {
namespace HWY_NAMESPACE {

#if SLUICE_EXACT_SIMD

// Adds the squares of `element_count` elements, a multiple of 16, to the 16 sums.
template <class Elements>
void add_squares(const typename Elements::Element* gradient, std::int64_t element_count,
                 double* HWY_RESTRICT sums) {
  const hn::CappedTag<double, 8> d;  // two vectors or more, to overlap their additions
  const hn::Rebind<float, decltype(d)> d_float;
  constexpr std::size_t kLanes = hn::MaxLanes(d);
  constexpr std::size_t kVectors = 16 / kLanes;
  hn::Vec<decltype(d)> partial[kVectors];
  for (std::size_t k = 0; k < kVectors; ++k) partial[k] = hn::LoadU(d, sums + k * kLanes);
  for (std::int64_t i = 0; i < element_count; i += 16) {
    for (std::size_t k = 0; k < kVectors; ++k) {
      const auto g = hn::PromoteTo(d, Elements::load(d_float, gradient + i + k * kLanes));
      partial[k] = hn::MulAdd(g, g, partial[k]);
    }
  }
  for (std::size_t k = 0; k < kVectors; ++k) hn::StoreU(partial[k], d, sums + k * kLanes);
}

template <class Elements>
double block_sum(const void* gradient, std::int64_t first, std::int64_t count) {
  const auto* elements = static_cast<const typename Elements::Element*>(gradient) + first;
  alignas(64) double sums[16] = {};
  const std::int64_t whole = count / 16 * 16;
  add_squares<Elements>(elements, whole, sums);
  if (whole < count) {  // zeros add nothing: every sum is +0 or more
    typename Elements::Element last[16] = {};
    std::copy(elements + whole, elements + count, last);
    add_squares<Elements>(last, 16, sums);
  }
  for (std::size_t width = 8; width >= 1; width /= 2) {
    for (std::size_t k = 0; k < width; ++k) sums[k] += sums[k + width];
  }
  return sums[0];
}

double block_for_target(const void* gradient, GradientKind kind, std::int64_t first,
                        std::int64_t count) {
  switch (kind) {
    case GradientKind::fp32:
      return block_sum<Fp32Elements>(gradient, first, count);
    case GradientKind::bf16:
      return block_sum<Bf16Elements>(gradient, first, count);
    case GradientKind::fp16:
      return block_sum<Fp16Elements>(gradient, first, count);
  }
  return 0;
}

#else

double block_for_target(const void* gradient, GradientKind kind, std::int64_t first,
                        std::int64_t count) {
  const auto* block = static_cast<const std::byte*>(gradient) + first * bytes_of(kind);
  return gradient_stats_reference(block, kind, count).sum_of_squares;
}

#endif  // SLUICE_EXACT_SIMD

}  // namespace HWY_NAMESPACE
}  // namespace sluice::optimizer
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice::optimizer {

HWY_EXPORT(block_for_target);

GradientStats gradient_stats(const void* gradient, GradientKind kind, std::int64_t element_count) {
  GradientStats total;
  for (std::int64_t first = 0; first < element_count; first += kNormBlockElements) {
    const std::int64_t count = std::min(kNormBlockElements, element_count - first);
    const double sum = HWY_DYNAMIC_DISPATCH(block_for_target)(gradient, kind, first, count);
    total = add_block(total, {.sum_of_squares = sum, .finite = std::isfinite(sum)});
  }
  return total;
}

}  // namespace sluice::optimizer
#endif
