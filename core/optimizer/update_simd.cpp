// The update rules in vectors. The work is bound by memory (AdamW: 28 bytes an element with an fp32
// gradient, 30 with the 16-bit copy; the others 8 less), so the arithmetic, NaN handling included,
// hides behind the loads. The 16-bit copy is only written, so its stores bypass the caches; else
// its old content would be read too.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/optimizer/update_simd.cpp"
#include "hwy/foreach_target.h"
// The order matters: what follows is compiled once for each target.
#include "core/optimizer/rules-inl.h"
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
std::int64_t elements_before_aligned(const UpdateArrays& arrays, std::int64_t lanes) {
  const auto past = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(arrays.parameters) /
                                              sizeof(std::uint16_t) % lanes);
  return std::min((lanes - past) % lanes, arrays.element_count);
}

// The vector of elements from `i` on: updates the state and returns the new master weights.
template <class Rule, class D, class V = hn::Vec<D>>
HWY_INLINE V update_vector(D d, const typename Rule::Scalars& scalars, V gradient,
                           const std::array<float*, kMaxStateArrays>& state, std::int64_t i) {
  auto p = hn::LoadU(d, state[0] + i);
  auto second = hn::LoadU(d, state[1] + i);
  if constexpr (Rule::kStateArrays == 3) {
    auto third = hn::LoadU(d, state[2] + i);
    Rule::moments(d, scalars, gradient, p, second, third);
    p = Rule::weight(d, scalars, gradient, p, second, third);
    hn::StoreU(stored(d, third), d, state[2] + i);
  } else {
    Rule::moments(d, scalars, gradient, p, second);
    p = Rule::weight(d, scalars, gradient, p, second);
  }
  hn::StoreU(stored(d, second), d, state[1] + i);
  p = stored(d, p);
  hn::StoreU(p, d, state[0] + i);
  return p;
}

template <class Rule, class Gradient, class Parameters>
void update_arrays(const typename Rule::Scalars& scalars_in_memory, const UpdateArrays& arrays) {
  constexpr bool kHasParameters = !std::is_same_v<Parameters, NoParameters>;
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  // Copies that no store of the loop can alias, so that they stay in registers.
  const typename Rule::Scalars scalars = scalars_in_memory;
  const std::array<float*, kMaxStateArrays> state = arrays.state;
  std::uint16_t* const parameters = arrays.parameters;
  const auto* gradient = static_cast<const typename Gradient::Element*>(arrays.gradient);
  const std::int64_t count = arrays.element_count;

  std::int64_t i = kHasParameters ? elements_before_aligned(arrays, lanes) : 0;
  update_reference(scalars_in_memory, slice(arrays, 0, i));
  for (; i + lanes <= count; i += lanes) {
    const auto p = update_vector<Rule>(d, scalars, Gradient::load(d, gradient + i), state, i);
    if constexpr (kHasParameters) {
      hn::Stream(Parameters::narrow(d, p), hn::Rebind<std::uint16_t, decltype(d)>(),
                 parameters + i);
    }
  }
  if constexpr (kHasParameters) hwy::FlushStream();  // before another thread or a device reads it
  update_reference(scalars_in_memory, slice(arrays, i, count - i));
}

template <class Rule, class Gradient>
void update_by_parameters(const typename Rule::Scalars& scalars, const UpdateArrays& arrays) {
  if (arrays.parameters == nullptr)
    return update_arrays<Rule, Gradient, NoParameters>(scalars, arrays);
  switch (arrays.parameter_kind) {
    case Float16Kind::bf16:
      return update_arrays<Rule, Gradient, Bf16Elements>(scalars, arrays);
    case Float16Kind::fp16:
      return update_arrays<Rule, Gradient, Fp16Elements>(scalars, arrays);
  }
}

template <class Rule>
void update_by_gradient(const typename Rule::Scalars& scalars, const UpdateArrays& arrays) {
  switch (arrays.gradient_kind) {
    case GradientKind::fp32:
      return update_by_parameters<Rule, Fp32Elements>(scalars, arrays);
    case GradientKind::bf16:
      return update_by_parameters<Rule, Bf16Elements>(scalars, arrays);
    case GradientKind::fp16:
      return update_by_parameters<Rule, Fp16Elements>(scalars, arrays);
  }
}

void adamw_for_target(const AdamWScalars& scalars, const UpdateArrays& arrays) {
  update_by_gradient<AdamWRule>(scalars, arrays);
}
void sgd_for_target(const SgdScalars& scalars, const UpdateArrays& arrays) {
  update_by_gradient<SgdRule>(scalars, arrays);
}
void adagrad_for_target(const AdaGradScalars& scalars, const UpdateArrays& arrays) {
  update_by_gradient<AdaGradRule>(scalars, arrays);
}

#else

void adamw_for_target(const AdamWScalars& scalars, const UpdateArrays& arrays) {
  update_reference(scalars, arrays);
}
void sgd_for_target(const SgdScalars& scalars, const UpdateArrays& arrays) {
  update_reference(scalars, arrays);
}
void adagrad_for_target(const AdaGradScalars& scalars, const UpdateArrays& arrays) {
  update_reference(scalars, arrays);
}

#endif  // SLUICE_EXACT_SIMD

}  // namespace HWY_NAMESPACE
}  // namespace sluice::optimizer
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice::optimizer {

HWY_EXPORT(adamw_for_target);
HWY_EXPORT(sgd_for_target);
HWY_EXPORT(adagrad_for_target);

namespace {

void run_kernel(const AdamWScalars& scalars, const UpdateArrays& arrays) {
  HWY_DYNAMIC_DISPATCH(adamw_for_target)(scalars, arrays);
}
void run_kernel(const SgdScalars& scalars, const UpdateArrays& arrays) {
  HWY_DYNAMIC_DISPATCH(sgd_for_target)(scalars, arrays);
}
void run_kernel(const AdaGradScalars& scalars, const UpdateArrays& arrays) {
  HWY_DYNAMIC_DISPATCH(adagrad_for_target)(scalars, arrays);
}

}  // namespace

void update(const UpdateScalars& scalars, const UpdateArrays& arrays) {
  std::visit([&arrays](const auto& rule_scalars) { run_kernel(rule_scalars, arrays); }, scalars);
}

}  // namespace sluice::optimizer
#endif
