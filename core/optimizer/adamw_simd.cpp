// AdamW in vectors. The work is bound by memory (28 bytes an element with an fp32 gradient, 30 with
// the 16-bit copy), so the arithmetic, NaN handling included, hides behind the loads. The 16-bit
// copy is only written, so its stores bypass the caches; else its old content would be read too.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/optimizer/adamw_simd.cpp"
#include "hwy/foreach_target.h"
// The order matters: what follows is compiled once for each target.
#include "core/optimizer/simd-inl.h"
#include "core/optimizer/update_rule.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::optimizer {
namespace HWY_NAMESPACE {

#if SLUICE_EXACT_SIMD

struct NoParameters {};

// How many elements come before the first one whose 16-bit copy can be stored as an aligned vector.
std::int64_t elements_before_aligned(const AdamWArrays& arrays, std::int64_t lanes) {
  const auto past = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(arrays.parameters) /
                                              sizeof(std::uint16_t) % lanes);
  return std::min((lanes - past) % lanes, arrays.element_count);
}

template <class Gradient, class Parameters>
void update(const AdamWScalars& scalars, const AdamWArrays& arrays) {
  constexpr bool kHasParameters = !std::is_same_v<Parameters, NoParameters>;
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto grad_scale = hn::Set(d, scalars.grad_scale);
  const auto beta1 = hn::Set(d, scalars.beta1);
  const auto one_minus_beta1 = hn::Set(d, scalars.one_minus_beta1);
  const auto beta2 = hn::Set(d, scalars.beta2);
  const auto one_minus_beta2 = hn::Set(d, scalars.one_minus_beta2);
  const auto decay = hn::Set(d, scalars.decay);
  const auto minus_step_size = hn::Set(d, scalars.minus_step_size);
  const auto inverse_sqrt_bias2 = hn::Set(d, scalars.inverse_sqrt_bias2);
  const auto eps = hn::Set(d, scalars.eps);
  const auto* gradient = static_cast<const typename Gradient::Element*>(arrays.gradient);

  std::int64_t i = kHasParameters ? elements_before_aligned(arrays, lanes) : 0;
  adamw_reference(scalars, slice(arrays, 0, i));
  for (; i + lanes <= arrays.element_count; i += lanes) {
    const auto g = hn::Mul(Gradient::load(d, gradient + i), grad_scale);
    const auto m = hn::MulAdd(beta1, hn::LoadU(d, arrays.exp_avg + i), hn::Mul(one_minus_beta1, g));
    const auto v = hn::MulAdd(beta2, hn::LoadU(d, arrays.exp_avg_sq + i),
                              hn::Mul(hn::Mul(one_minus_beta2, g), g));
    const auto denominator = hn::MulAdd(hn::Sqrt(v), inverse_sqrt_bias2, eps);
    const auto decayed = hn::Mul(hn::LoadU(d, arrays.master_weights + i), decay);
    const auto p = stored(d, hn::MulAdd(minus_step_size, hn::Div(m, denominator), decayed));

    hn::StoreU(stored(d, m), d, arrays.exp_avg + i);
    hn::StoreU(stored(d, v), d, arrays.exp_avg_sq + i);
    hn::StoreU(p, d, arrays.master_weights + i);
    if constexpr (kHasParameters) {
      hn::Stream(Parameters::narrow(d, p), hn::Rebind<std::uint16_t, decltype(d)>(),
                 arrays.parameters + i);
    }
  }
  if constexpr (kHasParameters) hwy::FlushStream();  // before another thread or a device reads it
  adamw_reference(scalars, slice(arrays, i, arrays.element_count - i));
}

template <class Gradient>
void update_by_parameters(const AdamWScalars& scalars, const AdamWArrays& arrays) {
  if (arrays.parameters == nullptr) return update<Gradient, NoParameters>(scalars, arrays);
  switch (arrays.parameter_kind) {
    case Float16Kind::bf16:
      return update<Gradient, Bf16Elements>(scalars, arrays);
    case Float16Kind::fp16:
      return update<Gradient, Fp16Elements>(scalars, arrays);
  }
}

void adamw_for_target(const AdamWScalars& scalars, const AdamWArrays& arrays) {
  switch (arrays.gradient_kind) {
    case GradientKind::fp32:
      return update_by_parameters<Fp32Elements>(scalars, arrays);
    case GradientKind::bf16:
      return update_by_parameters<Bf16Elements>(scalars, arrays);
    case GradientKind::fp16:
      return update_by_parameters<Fp16Elements>(scalars, arrays);
  }
}

#else

void adamw_for_target(const AdamWScalars& scalars, const AdamWArrays& arrays) {
  adamw_reference(scalars, arrays);
}

#endif  // SLUICE_EXACT_SIMD

}  // namespace HWY_NAMESPACE
}  // namespace sluice::optimizer
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice::optimizer {

HWY_EXPORT(adamw_for_target);

void adamw_update(const AdamWScalars& scalars, const AdamWArrays& arrays) {
  HWY_DYNAMIC_DISPATCH(adamw_for_target)(scalars, arrays);
}

}  // namespace sluice::optimizer
#endif
