// The codec of base/state_codec.h in vectors: lanes of float from codes and back. Included once for
// each Highway target, as simd-inl.h.
//
// Codes are integers in lanes of 32 bits. All that goes across lanes is a maximum of integers, so
// that numbers depend on no width.
//
// Thread contract: free functions, any thread.

#if defined(SLUICE_OPTIMIZER_SPLIT_CODES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_OPTIMIZER_SPLIT_CODES_INL_H_
#undef SLUICE_OPTIMIZER_SPLIT_CODES_INL_H_
#else
#define SLUICE_OPTIMIZER_SPLIT_CODES_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "base/state_codec.h"
#include "core/optimizer/simd-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::optimizer {
namespace HWY_NAMESPACE {

#if SLUICE_EXACT_SIMD

template <class D>
using Lanes32 = hn::Vec<hn::RebindToUnsigned<D>>;

inline constexpr std::uint32_t kSign = 0x80000000u;
inline constexpr std::uint32_t kMagnitude = 0x7fffffffu;
inline constexpr int kCodeShift = 19;  // 16 steps a binade
inline constexpr std::uint32_t kHashStride = 0x9E3779B1u;

// One group of one array. What stands beside the codes is not touched where there is none.
struct GroupCodes {
  std::byte* codes = nullptr;
  std::byte* scale = nullptr;
};

template <class D>
HWY_INLINE Lanes32<D> all(D, std::uint32_t bits) {
  return hn::Set(hn::RebindToUnsigned<D>(), bits);
}
template <class D>
HWY_INLINE Lanes32<D> bits_of(D, hn::Vec<D> value) {
  return hn::BitCast(hn::RebindToUnsigned<D>(), value);
}
template <class D>
HWY_INLINE hn::Vec<D> value_of(D d, Lanes32<D> bits) {
  return hn::BitCast(d, bits);
}

// Elements of T from `i` on; signed ones with their sign in all bits above.
template <class T, class D>
HWY_INLINE Lanes32<D> load_codes(D, const std::byte* codes, std::int64_t i) {
  using Wide = std::conditional_t<std::is_signed_v<T>, std::int32_t, std::uint32_t>;
  const auto* from = reinterpret_cast<const T*>(codes) + i;
  const auto wide = hn::PromoteTo(hn::Rebind<Wide, D>(), hn::LoadU(hn::Rebind<T, D>(), from));
  return hn::BitCast(hn::RebindToUnsigned<D>(), wide);
}
template <class D>
HWY_INLINE Lanes32<D> load_codes_32bit(D, const std::byte* codes, std::int64_t i) {
  return hn::LoadU(hn::RebindToUnsigned<D>(), reinterpret_cast<const std::uint32_t*>(codes) + i);
}
// The lowest 16 bits.
template <class D>
HWY_INLINE void store_16bit(D, Lanes32<D> codes_32bit, std::byte* codes, std::int64_t i) {
  const hn::Rebind<std::uint16_t, D> d_codes;
  hn::StoreU(hn::TruncateTo(d_codes, codes_32bit), d_codes,
             reinterpret_cast<std::uint16_t*>(codes) + i);
}
// Numbers below 256.
template <class D>
HWY_INLINE void store_8bit(D, Lanes32<D> codes_32bit, std::byte* codes, std::int64_t i) {
  hn::StoreU(hn::U8FromU32(codes_32bit), hn::Rebind<std::uint8_t, D>(),
             reinterpret_cast<std::uint8_t*>(codes) + i);
}

// sluice::mixed of elements whose products with kHashStride, and the key, are already in `h`.
template <class D>
HWY_INLINE Lanes32<D> mixed_lanes(D d, Lanes32<D> h) {
  h = hn::Xor(h, hn::ShiftRight<15>(h));
  h = hn::Mul(h, all(d, 0x2C1B3C6Du));
  h = hn::Xor(h, hn::ShiftRight<12>(h));
  h = hn::Mul(h, all(d, 0x297A2D39u));
  return hn::Xor(h, hn::ShiftRight<15>(h));
}

// Decoding ---------------------------------------------------------------------------------------

constexpr std::uint32_t mean_bias(std::uint32_t exponent) {
  return std::max<std::int32_t>(static_cast<std::int32_t>(exponent) - 7, 1) * (1u << 23);
}

// What a group's scale adds to its codes.
template <ArrayCode kCode>
HWY_INLINE std::uint32_t decoding_base(const GroupCodes& group) {
  if constexpr (kCode == ArrayCode::mean8) {
    return mean_bias(std::to_integer<std::uint32_t>(*group.scale));
  } else if constexpr (kCode == ArrayCode::square8) {
    std::uint32_t largest;
    std::memcpy(&largest, group.scale, sizeof largest);
    return largest - (255u << kCodeShift);
  } else {
    return 0;
  }
}

template <ArrayCode kCode, class D>
HWY_INLINE hn::Vec<D> decoded(D d, const GroupCodes& group, std::int64_t i, std::uint32_t base) {
  const hn::RebindToSigned<D> d_signed;
  const hn::RebindToUnsigned<D> d_bits;
  if constexpr (kCode == ArrayCode::mean8) {
    const auto codes = load_codes<std::int8_t>(d, group.codes, i);
    const auto steps = hn::And(hn::ShiftLeft<kCodeShift>(codes), all(d, 127u << kCodeShift));
    const auto biased = value_of(d, hn::Add(all(d, base), steps));
    const auto magnitude = hn::Sub(biased, value_of(d, all(d, base)));
    return value_of(d, hn::Or(bits_of(d, magnitude), hn::And(codes, all(d, kSign))));
  } else if constexpr (kCode == ArrayCode::square8) {
    const auto codes = load_codes<std::uint8_t>(d, group.codes, i);
    const auto bits = hn::Add(all(d, base), hn::ShiftLeft<kCodeShift>(codes));
    const auto positive = hn::Max(hn::BitCast(d_signed, bits), hn::Zero(d_signed));
    const auto is_zero = hn::Eq(codes, hn::Zero(d_bits));
    return value_of(d, hn::IfThenZeroElse(is_zero, hn::BitCast(d_bits, positive)));
  } else if constexpr (kCode == ArrayCode::bf16) {
    return value_of(d, hn::ShiftLeft<16>(load_codes<std::uint16_t>(d, group.codes, i)));
  } else if constexpr (kCode == ArrayCode::fp32_with_ties) {
    return value_of(d, hn::And(load_codes_32bit(d, group.codes, i), all(d, kMagnitude)));
  } else {
    static_assert(kCode == ArrayCode::fp32);
    return value_of(d, load_codes_32bit(d, group.codes, i));
  }
}

// `tie`: 1 << 16 where the copy was rounded down from one.
template <ArrayCode kRemainder, class D>
HWY_INLINE hn::Vec<D> decoded_weight(D d, const GroupCodes& copy, const GroupCodes& remainder,
                                     std::int64_t i, Lanes32<D> tie) {
  const auto high = hn::ShiftLeft<16>(load_codes<std::uint16_t>(d, copy.codes, i));
  if constexpr (kRemainder == ArrayCode::low8) {
    const auto low = hn::ShiftLeft<8>(load_codes<std::int8_t>(d, remainder.codes, i));
    return value_of(d, hn::Add(high, low));
  } else {
    const auto low = load_codes<std::int16_t>(d, remainder.codes, i);
    return value_of(d, hn::Add(hn::Add(high, low), tie));
  }
}

// The sign bits of all lanes, lane 0's the lowest.
template <class D>
HWY_INLINE std::uint64_t bits_of_signs(D, Lanes32<D> lanes) {
  const hn::RebindToUnsigned<D> d_bits;
  const hn::RebindToSigned<D> d_signed;
  std::uint64_t bits = 0;
  const auto is_set =
      hn::RebindMask(d_bits, hn::Lt(hn::BitCast(d_signed, lanes), hn::Zero(d_signed)));
  hn::StoreMaskBits(d_bits, is_set, reinterpret_cast<std::uint8_t*>(&bits));
  return bits;
}

// Encoding ---------------------------------------------------------------------------------------

// One vector of an array that is no part of the master weights. `largest`: the group's largest bits
// of a magnitude; `hash`: the random bits; `tie`: the sign bit where the copy was rounded down from
// one.
template <ArrayCode kCode, class D>
HWY_INLINE void encode(D d, hn::Vec<D> value, std::uint32_t largest, Lanes32<D> hash,
                       Lanes32<D> tie, const GroupCodes& group, std::int64_t i) {
  const hn::RebindToSigned<D> d_signed;
  const hn::RebindToUnsigned<D> d_bits;
  const auto bits = bits_of(d, value);
  if constexpr (kCode == ArrayCode::mean8) {
    const auto bias = all(d, mean_bias(largest >> 23));
    const auto biased = hn::Add(hn::Abs(value), value_of(d, bias));
    const auto past_bias = hn::Sub(bits_of(d, biased), bias);
    const auto steps = hn::ShiftRight<kCodeShift>(hn::Add(past_bias, hn::ShiftRight<13>(hash)));
    const auto sign = hn::And(hn::ShiftRight<24>(bits), all(d, 128u));
    const auto code = hn::Or(hn::Min(steps, all(d, 127u)), sign);
    store_8bit(d, code, group.codes, i);
  } else if constexpr (kCode == ArrayCode::square8) {
    const auto random = hn::And(hash, all(d, 0x7ffffu));
    const auto below = hn::Add(hn::Sub(all(d, largest), bits), random);
    const auto steps = hn::BitCast(d_signed, hn::ShiftRight<kCodeShift>(below));
    const auto code = hn::Max(hn::Sub(hn::Set(d_signed, 255), steps), hn::Set(d_signed, 1));
    const auto is_zero = hn::Eq(bits, hn::Zero(d_bits));
    store_8bit(d, hn::IfThenZeroElse(is_zero, hn::BitCast(d_bits, code)), group.codes, i);
  } else if constexpr (kCode == ArrayCode::bf16) {
    const auto rounded = hn::Add(bits, hn::And(hash, all(d, 0xffffu)));
    store_16bit(d, hn::ShiftRight<16>(rounded), group.codes, i);
  } else {
    auto stored_bits = bits;
    if constexpr (kCode == ArrayCode::fp32_with_ties)
      stored_bits = hn::Or(hn::And(bits, all(d, kMagnitude)), tie);
    hn::StoreU(stored_bits, d_bits, reinterpret_cast<std::uint32_t*>(group.codes) + i);
  }
}

// The scale that a group with this maximum has.
template <ArrayCode kCode>
HWY_INLINE void encode_scale(std::uint32_t largest, const GroupCodes& group) {
  if constexpr (kCode == ArrayCode::mean8) *group.scale = static_cast<std::byte>(largest >> 23);
  if constexpr (kCode == ArrayCode::square8) std::memcpy(group.scale, &largest, sizeof largest);
}

// The copy rounded to the nearest even, and what it does not say; returns the sign bit where it was
// rounded down from a tie. The one NaN of stored state rounds to itself.
template <class D>
HWY_INLINE Lanes32<D> encode_exact_weight(D d, hn::Vec<D> value, const GroupCodes& copy,
                                          const GroupCodes& remainder, std::int64_t i) {
  const auto bits = bits_of(d, value);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), all(d, 1u));
  const auto high = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, all(d, 0x7fffu))));
  store_16bit(d, high, copy.codes, i);
  store_16bit(d, bits, remainder.codes, i);
  const auto is_tie = hn::Eq(hn::Sub(bits, hn::ShiftLeft<16>(high)), all(d, 0x8000u));
  return hn::IfThenElseZero(is_tie, all(d, kSign));
}

template <ArrayCode kRemainder, class D>
HWY_INLINE void encode_compact_weight(D d, hn::Vec<D> value, Lanes32<D> hash,
                                      const GroupCodes& copy, const GroupCodes& remainder,
                                      std::int64_t i) {
  auto bits = bits_of(d, value);
  if constexpr (kRemainder == ArrayCode::low8) {
    bits = hn::Add(bits, hn::And(hn::ShiftRight<8>(hash), all(d, 0xffu)));
    const auto low = hn::And(hn::ShiftRight<8>(bits), all(d, 0xffu));
    store_8bit(d, low, remainder.codes, i);
    bits = hn::And(bits, all(d, ~0xffu));
  } else {
    store_16bit(d, bits, remainder.codes, i);
  }
  const auto high = hn::ShiftRight<16>(hn::Add(bits, all(d, 0x8000u)));
  store_16bit(d, high, copy.codes, i);
}

#endif  // SLUICE_EXACT_SIMD

}  // namespace HWY_NAMESPACE
}  // namespace sluice::optimizer
HWY_AFTER_NAMESPACE();

#endif  // the toggled guard
