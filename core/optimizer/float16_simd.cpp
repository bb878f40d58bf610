// Widening, narrowing and accumulating runs of 16-bit elements. Tails shorter than a vector go
// through the definitions in base/float16.h.

#include <cstdint>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/optimizer/float16_simd.cpp"
#include "base/float16.h"
#include "hwy/foreach_target.h"
// The order matters: what follows is compiled once for each target.
#include "core/optimizer/gradient_stats.h"
#include "core/optimizer/simd-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::optimizer {
namespace HWY_NAMESPACE {

#if SLUICE_EXACT_SIMD

// Each of these returns how many elements it has done: all but the last few.
template <class From>
std::int64_t widen_vectors(const std::uint16_t* from, float* to, std::int64_t element_count) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= element_count; i += lanes) hn::StoreU(From::load(d, from + i), d, to + i);
  return i;
}

template <class To>
std::int64_t narrow_vectors(const float* from, std::uint16_t* to, std::int64_t element_count) {
  const hn::ScalableTag<float> d;
  const hn::Rebind<std::uint16_t, decltype(d)> d_half;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= element_count; i += lanes)
    hn::StoreU(To::narrow(d, hn::LoadU(d, from + i)), d_half, to + i);
  return i;
}

template <class From>
std::int64_t accumulate_vectors(const std::uint16_t* gradient, float* accumulator,
                                std::int64_t element_count) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= element_count; i += lanes) {
    const auto sum = hn::Add(hn::LoadU(d, accumulator + i), From::load(d, gradient + i));
    hn::StoreU(stored(d, sum), d, accumulator + i);
  }
  return i;
}

std::int64_t widen_for_target(const std::uint16_t* from, Float16Kind kind, float* to,
                              std::int64_t element_count) {
  return kind == Float16Kind::bf16 ? widen_vectors<Bf16Elements>(from, to, element_count)
                                   : widen_vectors<Fp16Elements>(from, to, element_count);
}

std::int64_t narrow_for_target(const float* from, Float16Kind kind, std::uint16_t* to,
                               std::int64_t element_count) {
  return kind == Float16Kind::bf16 ? narrow_vectors<Bf16Elements>(from, to, element_count)
                                   : narrow_vectors<Fp16Elements>(from, to, element_count);
}

std::int64_t accumulate_for_target(const std::uint16_t* gradient, Float16Kind kind,
                                   float* accumulator, std::int64_t element_count) {
  return kind == Float16Kind::bf16
             ? accumulate_vectors<Bf16Elements>(gradient, accumulator, element_count)
             : accumulate_vectors<Fp16Elements>(gradient, accumulator, element_count);
}

#else

std::int64_t widen_for_target(const std::uint16_t*, Float16Kind, float*, std::int64_t) { return 0; }
std::int64_t narrow_for_target(const float*, Float16Kind, std::uint16_t*, std::int64_t) {
  return 0;
}
std::int64_t accumulate_for_target(const std::uint16_t*, Float16Kind, float*, std::int64_t) {
  return 0;
}

#endif  // SLUICE_EXACT_SIMD

}  // namespace HWY_NAMESPACE
}  // namespace sluice::optimizer
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice::optimizer {

HWY_EXPORT(widen_for_target);
HWY_EXPORT(narrow_for_target);
HWY_EXPORT(accumulate_for_target);

void widen(const std::uint16_t* from, Float16Kind kind, float* to, std::int64_t element_count) {
  std::int64_t i = HWY_DYNAMIC_DISPATCH(widen_for_target)(from, kind, to, element_count);
  for (; i < element_count; ++i) to[i] = float_from_float16(kind, from[i]);
}

void narrow(const float* from, Float16Kind kind, std::uint16_t* to, std::int64_t element_count) {
  std::int64_t i = HWY_DYNAMIC_DISPATCH(narrow_for_target)(from, kind, to, element_count);
  for (; i < element_count; ++i) to[i] = float16_from_float(kind, from[i]);
}

void put_parameters(const float* master_weights, const ParameterSpan& into) {
  if (has_16_bits(into.kind())) {
    narrow(master_weights, float16_kind(into.kind()), into.values_16bit().data(), into.size());
  } else {
    std::memcpy(into.data(), master_weights, static_cast<std::size_t>(into.size_bytes()));
  }
}

void accumulate(const std::uint16_t* gradient, Float16Kind kind, float* accumulator,
                std::int64_t element_count) {
  std::int64_t i =
      HWY_DYNAMIC_DISPATCH(accumulate_for_target)(gradient, kind, accumulator, element_count);
  for (; i < element_count; ++i)
    accumulator[i] = stored_float(accumulator[i] + float_from_float16(kind, gradient[i]));
}

}  // namespace sluice::optimizer
#endif
