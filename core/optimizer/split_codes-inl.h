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
#include <array>
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

// Encoding ---------------------------------------------------------------------------------------
// Four vectors at once. Two become one of 16-bit lanes by a shift and a blend, in turns: lane 0 of
// the first, lane 0 of the second, lane 1 of the first... What remains to be done is done on half
// as many vectors, and a permutation puts the codes into their order before they are stored.

// Vectors that stand one after the other.
template <class D>
struct Four {
  Lanes32<D> a, b, c, e;
};
template <class D, class OfVector>
HWY_INLINE Four<D> four(D, OfVector of_vector) {
  return {of_vector(0), of_vector(1), of_vector(2), of_vector(3)};
}
template <class D>
HWY_INLINE Four<D> load_four(D d, const float* from) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  return four(d, [&](std::int64_t vector)
                     HWY_ATTR { return bits_of(d, hn::Load(d, from + vector * lanes)); });
}

template <class D>
using Lanes16 = hn::Vec<hn::Repartition<std::uint16_t, D>>;
template <class D>
HWY_INLINE Lanes16<D> all16(D, std::uint32_t bits) {
  return hn::Set(hn::Repartition<std::uint16_t, D>(), static_cast<std::uint16_t>(bits));
}
template <class D>
HWY_INLINE Lanes16<D> upper_halves(D, Lanes32<D> even, Lanes32<D> odd) {
  const hn::Repartition<std::uint16_t, D> d16;
  return hn::OddEven(hn::BitCast(d16, odd), hn::BitCast(d16, hn::ShiftRight<16>(even)));
}
template <class D>
HWY_INLINE Lanes16<D> lower_halves(D, Lanes32<D> even, Lanes32<D> odd) {
  const hn::Repartition<std::uint16_t, D> d16;
  return hn::OddEven(hn::BitCast(d16, hn::ShiftLeft<16>(odd)), hn::BitCast(d16, even));
}

// Where each 32 bits of vectors that were mixed within blocks of 128 bits come from.
template <std::size_t kLanes, std::size_t kVectors>
constexpr std::array<std::int32_t, kLanes> lanes_in_order() {
  constexpr std::size_t kBlocks = kLanes / 4;
  constexpr std::size_t kParts = 4 / kVectors;  // that a vector has of a block
  std::array<std::int32_t, kLanes> from{};
  for (std::size_t i = 0; i < kLanes; ++i) {
    const std::size_t vector = i / (kBlocks * kParts);
    const std::size_t block = i / kParts % kBlocks;
    from[i] = static_cast<std::int32_t>(block * 4 + vector * kParts + i % kParts);
  }
  return from;
}
template <std::size_t kVectors, class D>
HWY_INLINE Lanes32<D> blocks_in_order(D, Lanes32<D> mixed) {
  const hn::RebindToUnsigned<D> d32;
  if constexpr (hn::MaxLanes(d32) == 4) {
    return mixed;
  } else {
    alignas(64) static constexpr auto kFrom = lanes_in_order<hn::MaxLanes(d32), kVectors>();
    return hn::TableLookupLanes(mixed, hn::SetTableIndices(d32, kFrom.data()));
  }
}
template <class D>
HWY_INLINE Lanes32<D> bytes_in_order(D, Lanes32<D> mixed, const std::uint8_t* order) {
  const hn::Repartition<std::uint8_t, D> d8;
  const auto shuffled = hn::TableLookupBytes(hn::BitCast(d8, mixed), hn::LoadDup128(d8, order));
  return hn::BitCast(hn::RebindToUnsigned<D>(), shuffled);
}

// Codes of two vectors, in turns.
template <class D>
HWY_INLINE void store_16bit(D d, Lanes16<D> mixed, std::byte* codes, std::int64_t i) {
  alignas(16) static constexpr std::uint8_t kOrder[16] = {0, 1, 4, 5, 8,  9,  12, 13,
                                                          2, 3, 6, 7, 10, 11, 14, 15};
  const hn::RebindToUnsigned<D> d32;
  const auto in_blocks = bytes_in_order(d, hn::BitCast(d32, mixed), kOrder);
  hn::StoreU(blocks_in_order<2>(d, in_blocks), d32,
             reinterpret_cast<std::uint32_t*>(codes + i * 2));
}
// Codes below 256 of four vectors: of the first two in turns, and of the others.
template <class D>
HWY_INLINE void store_8bit(D d, Lanes16<D> first, Lanes16<D> second, std::byte* codes,
                           std::int64_t i) {
  alignas(16) static constexpr std::uint8_t kOrder[16] = {0, 4, 8, 12, 2, 6, 10, 14,
                                                          1, 5, 9, 13, 3, 7, 11, 15};
  const hn::RebindToUnsigned<D> d32;
  const auto mixed = hn::BitCast(d32, hn::Or(first, hn::ShiftLeft<8>(second)));
  const auto in_blocks = bytes_in_order(d, mixed, kOrder);
  hn::StoreU(blocks_in_order<4>(d, in_blocks), d32, reinterpret_cast<std::uint32_t*>(codes + i));
}

template <class D>
HWY_INLINE Lanes16<D> mean_codes(D d, Lanes32<D> even, Lanes32<D> odd, std::uint32_t largest,
                                 Lanes32<D> even_hash, Lanes32<D> odd_hash) {
  const std::uint32_t bias = mean_bias(largest >> 23);
  const auto biased = [&](Lanes32<D> bits, Lanes32<D> hash) HWY_ATTR {
    const auto value = hn::Add(hn::Abs(value_of(d, bits)), value_of(d, all(d, bias)));
    return hn::Add(bits_of(d, value), hn::ShiftRight<13>(hash));
  };
  const auto upper = upper_halves(d, biased(even, even_hash), biased(odd, odd_hash));
  const auto steps = hn::ShiftRight<kCodeShift - 16>(hn::Sub(upper, all16(d, bias >> 16)));
  const auto signs = hn::And(hn::ShiftRight<8>(upper_halves(d, even, odd)), all16(d, 128u));
  return hn::Or(hn::Min(steps, all16(d, 127u)), signs);
}

template <class D>
HWY_INLINE Lanes16<D> square_codes(D d, Lanes32<D> even, Lanes32<D> odd, std::uint32_t largest,
                                   Lanes32<D> even_hash, Lanes32<D> odd_hash) {
  const hn::RebindToUnsigned<D> d32;
  const hn::Repartition<std::uint16_t, D> d16;
  const auto below = [&](Lanes32<D> bits, Lanes32<D> hash) HWY_ATTR {
    return hn::Add(hn::Sub(all(d, largest), bits), hn::And(hash, all(d, 0x7ffffu)));
  };
  const auto zeros = [&](Lanes32<D> bits) HWY_ATTR {
    return hn::BitCast(d16, hn::VecFromMask(d32, hn::Eq(bits, hn::Zero(d32))));
  };
  const auto upper = upper_halves(d, below(even, even_hash), below(odd, odd_hash));
  const auto steps = hn::ShiftRight<kCodeShift - 16>(upper);
  const auto codes = hn::Max(hn::SaturatedSub(all16(d, 255u), steps), all16(d, 1u));
  return hn::AndNot(hn::OddEven(zeros(odd), zeros(even)), codes);
}

// Four vectors of an array that is no part of the master weights. `largest`: the group's largest
// bits of a magnitude; `hash`: the random bits; `tie`: the sign bit where the copy was rounded down
// from one.
template <ArrayCode kCode, class D>
HWY_INLINE void encode(D d, const float* values, std::uint32_t largest, const Four<D>& hash,
                       const Four<D>& tie, const GroupCodes& group, std::int64_t i) {
  const hn::RebindToUnsigned<D> d32;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const Four<D> bits = load_four(d, values + i);
  if constexpr (kCode == ArrayCode::mean8) {
    store_8bit(d, mean_codes(d, bits.a, bits.b, largest, hash.a, hash.b),
               mean_codes(d, bits.c, bits.e, largest, hash.c, hash.e), group.codes, i);
  } else if constexpr (kCode == ArrayCode::square8) {
    store_8bit(d, square_codes(d, bits.a, bits.b, largest, hash.a, hash.b),
               square_codes(d, bits.c, bits.e, largest, hash.c, hash.e), group.codes, i);
  } else if constexpr (kCode == ArrayCode::bf16) {
    const auto rounded = [&](Lanes32<D> of, Lanes32<D> random)
                             HWY_ATTR { return hn::Add(of, hn::And(random, all(d, 0xffffu))); };
    store_16bit(d, upper_halves(d, rounded(bits.a, hash.a), rounded(bits.b, hash.b)), group.codes,
                i);
    store_16bit(d, upper_halves(d, rounded(bits.c, hash.c), rounded(bits.e, hash.e)), group.codes,
                i + 2 * lanes);
  } else {
    const auto store = [&](Lanes32<D> of, Lanes32<D> its_tie, std::int64_t vector) HWY_ATTR {
      if constexpr (kCode == ArrayCode::fp32_with_ties)
        of = hn::Or(hn::And(of, all(d, kMagnitude)), its_tie);
      hn::StoreU(of, d32, reinterpret_cast<std::uint32_t*>(group.codes) + i + vector * lanes);
    };
    store(bits.a, tie.a, 0);
    store(bits.b, tie.b, 1);
    store(bits.c, tie.c, 2);
    store(bits.e, tie.e, 3);
  }
}

// The scale that a group with this maximum has.
template <ArrayCode kCode>
HWY_INLINE void encode_scale(std::uint32_t largest, const GroupCodes& group) {
  if constexpr (kCode == ArrayCode::mean8) *group.scale = static_cast<std::byte>(largest >> 23);
  if constexpr (kCode == ArrayCode::square8) std::memcpy(group.scale, &largest, sizeof largest);
}

// The sign bits of all lanes, the first one's the lowest.
template <class D>
HWY_INLINE std::uint64_t bits_of_signs(D, const Four<D>& lanes) {
  const hn::RebindToUnsigned<D> d_bits;
  const hn::RebindToSigned<D> d_signed;
  const auto of_vector = [&](Lanes32<D> vector) HWY_ATTR {
    std::uint64_t bits = 0;
    const auto is_set =
        hn::RebindMask(d_bits, hn::Lt(hn::BitCast(d_signed, vector), hn::Zero(d_signed)));
    hn::StoreMaskBits(d_bits, is_set, reinterpret_cast<std::uint8_t*>(&bits));
    return bits;
  };
  const std::size_t next = hn::Lanes(d_bits);
  return of_vector(lanes.a) | of_vector(lanes.b) << next | of_vector(lanes.c) << 2 * next |
         of_vector(lanes.e) << 3 * next;
}

// The upper halves of `rounded` as the copy, the lower ones of `bits` as the remainder.
template <class D>
HWY_INLINE void store_halves(D d, const Four<D>& rounded, const Four<D>& bits,
                             const GroupCodes& copy, const GroupCodes& remainder, std::int64_t i) {
  const std::int64_t next = i + 2 * static_cast<std::int64_t>(hn::Lanes(d));
  store_16bit(d, upper_halves(d, rounded.a, rounded.b), copy.codes, i);
  store_16bit(d, upper_halves(d, rounded.c, rounded.e), copy.codes, next);
  store_16bit(d, lower_halves(d, bits.a, bits.b), remainder.codes, i);
  store_16bit(d, lower_halves(d, bits.c, bits.e), remainder.codes, next);
}

// The copy rounded to the nearest even, and what it does not say; returns the sign bit where it was
// rounded down from a tie. The one NaN of stored state rounds to itself.
template <class D>
HWY_INLINE Four<D> encode_exact_weights(D d, const Four<D>& bits, const GroupCodes& copy,
                                        const GroupCodes& remainder, std::int64_t i) {
  const auto rounded_of = [&](Lanes32<D> of) HWY_ATTR {
    const auto odd = hn::And(hn::ShiftRight<16>(of), all(d, 1u));
    return hn::Add(of, hn::Add(odd, all(d, 0x7fffu)));
  };
  const auto tie_of = [&](Lanes32<D> of, Lanes32<D> rounded) HWY_ATTR {
    const auto rest = hn::Sub(of, hn::And(rounded, all(d, 0xffff0000u)));
    return hn::IfThenElseZero(hn::Eq(rest, all(d, 0x8000u)), all(d, kSign));
  };
  const Four<D> rounded = {rounded_of(bits.a), rounded_of(bits.b), rounded_of(bits.c),
                           rounded_of(bits.e)};
  store_halves(d, rounded, bits, copy, remainder, i);
  return {tie_of(bits.a, rounded.a), tie_of(bits.b, rounded.b), tie_of(bits.c, rounded.c),
          tie_of(bits.e, rounded.e)};
}

template <ArrayCode kRemainder, class D>
HWY_INLINE void encode_compact_weights(D d, const Four<D>& bits, const Four<D>& hash,
                                       const GroupCodes& copy, const GroupCodes& remainder,
                                       std::int64_t i) {
  const auto copy_of = [&](Lanes32<D> of) HWY_ATTR { return hn::Add(of, all(d, 0x8000u)); };
  if constexpr (kRemainder == ArrayCode::low16) {
    store_halves(d, {copy_of(bits.a), copy_of(bits.b), copy_of(bits.c), copy_of(bits.e)}, bits,
                 copy, remainder, i);
  } else {
    const auto rounded = [&](Lanes32<D> of, Lanes32<D> random) HWY_ATTR {
      return hn::Add(of, hn::And(hn::ShiftRight<8>(random), all(d, 0xffu)));
    };
    const auto a = rounded(bits.a, hash.a), b = rounded(bits.b, hash.b);
    const auto c = rounded(bits.c, hash.c), e = rounded(bits.e, hash.e);
    store_8bit(d, hn::ShiftRight<8>(lower_halves(d, a, b)),
               hn::ShiftRight<8>(lower_halves(d, c, e)), remainder.codes, i);
    store_16bit(d, upper_halves(d, copy_of(a), copy_of(b)), copy.codes, i);
    store_16bit(d, upper_halves(d, copy_of(c), copy_of(e)), copy.codes,
                i + 2 * static_cast<std::int64_t>(hn::Lanes(d)));
  }
}

#endif  // SLUICE_EXACT_SIMD

}  // namespace HWY_NAMESPACE
}  // namespace sluice::optimizer
HWY_AFTER_NAMESPACE();

#endif  // the toggled guard
