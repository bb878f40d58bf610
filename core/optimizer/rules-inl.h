// The update rules in vectors, for state in fp32 and in fewer bytes alike. Included once for each
// Highway target, as simd-inl.h.
//
// Thread contract: free functions, any thread.

#if defined(SLUICE_OPTIMIZER_RULES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_OPTIMIZER_RULES_INL_H_
#undef SLUICE_OPTIMIZER_RULES_INL_H_
#else
#define SLUICE_OPTIMIZER_RULES_INL_H_
#endif

#include "core/optimizer/simd-inl.h"
#include "core/optimizer/update_rule.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::optimizer {
namespace HWY_NAMESPACE {

#if SLUICE_EXACT_SIMD
// A rule, in two parts: from the gradient as it came and the state to the new moments, and from
// these to the new weight. What they return is yet to be stored.

struct AdamWRule {
  using Scalars = AdamWScalars;
  static constexpr int kStateArrays = 3;

  template <class D, class V = hn::Vec<D>>
  HWY_INLINE static void moments(D d, const Scalars& scalars, V gradient, V /*p*/, V& m, V& v) {
    const auto g = hn::Mul(gradient, hn::Set(d, scalars.grad_scale));
    m = hn::MulAdd(hn::Set(d, scalars.beta1), m, hn::Mul(hn::Set(d, scalars.one_minus_beta1), g));
    v = hn::MulAdd(hn::Set(d, scalars.beta2), v,
                   hn::Mul(hn::Mul(hn::Set(d, scalars.one_minus_beta2), g), g));
  }
  template <class D, class V = hn::Vec<D>>
  HWY_INLINE static V weight(D d, const Scalars& scalars, V /*gradient*/, V p, V m, V v) {
    const auto denominator =
        hn::MulAdd(hn::Sqrt(v), hn::Set(d, scalars.inverse_sqrt_bias2), hn::Set(d, scalars.eps));
    const auto decayed = hn::Mul(p, hn::Set(d, scalars.decay));
    return hn::MulAdd(hn::Set(d, scalars.minus_step_size), hn::Div(m, denominator), decayed);
  }
};

struct SgdRule {
  using Scalars = SgdScalars;
  static constexpr int kStateArrays = 2;

  template <class D, class V = hn::Vec<D>>
  HWY_INLINE static void moments(D d, const Scalars& scalars, V gradient, V p, V& m) {
    const auto g = hn::MulAdd(hn::Set(d, scalars.weight_decay), p,
                              hn::Mul(gradient, hn::Set(d, scalars.grad_scale)));
    m = hn::MulAdd(hn::Set(d, scalars.momentum), m, g);
  }
  template <class D, class V = hn::Vec<D>>
  HWY_INLINE static V weight(D d, const Scalars& scalars, V /*gradient*/, V p, V m) {
    return hn::MulAdd(hn::Set(d, scalars.minus_lr), m, p);
  }
};

struct AdaGradRule {
  using Scalars = AdaGradScalars;
  static constexpr int kStateArrays = 2;

  template <class D, class V = hn::Vec<D>>
  HWY_INLINE static V decayed(D d, const Scalars& scalars, V gradient, V p) {
    return hn::MulAdd(hn::Set(d, scalars.weight_decay), p,
                      hn::Mul(gradient, hn::Set(d, scalars.grad_scale)));
  }
  template <class D, class V = hn::Vec<D>>
  HWY_INLINE static void moments(D d, const Scalars& scalars, V gradient, V p, V& v) {
    const auto g = decayed(d, scalars, gradient, p);
    v = hn::MulAdd(g, g, v);
  }
  template <class D, class V = hn::Vec<D>>
  HWY_INLINE static V weight(D d, const Scalars& scalars, V gradient, V p, V v) {
    const auto denominator = hn::Add(hn::Sqrt(v), hn::Set(d, scalars.eps));
    const auto g = decayed(d, scalars, gradient, p);
    return hn::MulAdd(hn::Set(d, scalars.minus_lr), hn::Div(g, denominator), p);
  }
};
#endif  // SLUICE_EXACT_SIMD

}  // namespace HWY_NAMESPACE
}  // namespace sluice::optimizer
HWY_AFTER_NAMESPACE();

#endif  // the toggled guard
