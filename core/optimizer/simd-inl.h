// The part that the SIMD kernels share: elements in, elements out. Included once for each Highway
// target, as Highway's foreach_target does it; the toggle is its include guard.
//
// Only targets with a fused multiply-add and IEEE fp16 conversions in hardware get vector code
// (AVX2 and AVX-512 on x86, NEON and better on AArch64): SLUICE_EXACT_SIMD. On others the kernels
// run the scalar code, which is slower and gives the same bits.
//
// Thread contract: free functions, any thread.

#if defined(SLUICE_OPTIMIZER_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_OPTIMIZER_SIMD_INL_H_
#undef SLUICE_OPTIMIZER_SIMD_INL_H_
#else
#define SLUICE_OPTIMIZER_SIMD_INL_H_
#endif

#include <cstdint>

#include "base/float16.h"
#include "core/optimizer/update_rule.h"
#include "hwy/highway.h"

#undef SLUICE_EXACT_SIMD
#if HWY_NATIVE_FMA && (HWY_ARCH_X86 || HWY_ARCH_ARM_A64)
#define SLUICE_EXACT_SIMD 1
#else
#define SLUICE_EXACT_SIMD 0
#endif

HWY_BEFORE_NAMESPACE();
namespace sluice::optimizer {
namespace HWY_NAMESPACE {

#if SLUICE_EXACT_SIMD
namespace hn = hwy::HWY_NAMESPACE;

// A kind of element that can be read as, or written from, lanes of float.
struct Fp32Elements {
  using Element = float;

  template <class D>
  HWY_INLINE static hn::Vec<D> load(D d, const float* from) {
    return hn::LoadU(d, from);
  }
};

struct Bf16Elements {
  using Element = std::uint16_t;

  template <class D>
  HWY_INLINE static hn::Vec<D> load(D d, const std::uint16_t* from) {
    const hn::RebindToUnsigned<D> d_bits;
    const hn::Rebind<std::uint16_t, D> d_half;
    return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(d_bits, hn::LoadU(d_half, from))));
  }

  // bf16_from_float. The AVX-512 instruction for this flushes subnormals to zero, so it is no use.
  template <class D>
  HWY_INLINE static hn::Vec<hn::Rebind<std::uint16_t, D>> narrow(D d, hn::Vec<D> value) {
    const hn::RebindToUnsigned<D> d_bits;
    const hn::RebindToSigned<D> d_signed;
    const auto bits = hn::BitCast(d_bits, value);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(d_bits, 1u));
    const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(d_bits, 0x7fffu)));
    const auto quiet = hn::Or(bits, hn::Set(d_bits, 0x400000u));
    const auto is_nan = hn::RebindMask(d_bits, hn::IsNaN(value));
    const auto upper = hn::ShiftRight<16>(hn::IfThenElse(is_nan, quiet, rounded));
    // Saturates above 65535, which no upper half is.
    return hn::DemoteTo(hn::Rebind<std::uint16_t, D>(), hn::BitCast(d_signed, upper));
  }
};

struct Fp16Elements {
  using Element = std::uint16_t;

  template <class D>
  HWY_INLINE static hn::Vec<D> load(D d, const std::uint16_t* from) {
    const hn::Rebind<std::uint16_t, D> d_half;
    const hn::Rebind<hwy::float16_t, D> d_fp16;
    return hn::PromoteTo(d, hn::BitCast(d_fp16, hn::LoadU(d_half, from)));
  }

  template <class D>
  HWY_INLINE static hn::Vec<hn::Rebind<std::uint16_t, D>> narrow(D, hn::Vec<D> value) {
    const hn::Rebind<std::uint16_t, D> d_half;
    const hn::Rebind<hwy::float16_t, D> d_fp16;
    return hn::BitCast(d_half, hn::DemoteTo(d_fp16, value));
  }
};

// stored_float.
template <class D>
HWY_INLINE hn::Vec<D> stored(D d, hn::Vec<D> value) {
  const hn::RebindToUnsigned<D> d_bits;
  const auto nan = hn::BitCast(d, hn::Set(d_bits, 0x7fc00000u));
  return hn::IfThenElse(hn::IsNaN(value), nan, value);
}
#endif  // SLUICE_EXACT_SIMD

}  // namespace HWY_NAMESPACE
}  // namespace sluice::optimizer
HWY_AFTER_NAMESPACE();

#endif  // the toggled guard
