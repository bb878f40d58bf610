#pragma once
// IEEE 754 binary32 in integers: operators on bit patterns, rounded to nearest even, with
// subnormals exact in and out. The vendor's floating-point operators take a subnormal for zero
// (PG060), and the rules (core/optimizer/update_rule.h) do not. Every NaN result is kNan.
//
// Definitions: IEEE 754-2019, sections 4.3.1, 5.4.1 and 6. Methods: a right shift keeps whether it
// lost anything in its last bit (Hauser's "jamming", Berkeley SoftFloat); quotient and root by
// restoring digit recurrence (Ercegovac and Lang, Digital Arithmetic, chapters 5 and 6).
//
// All is combinational: the caller's pipeline cuts it into stages. Plain 32 and 64-bit integers,
// and one 24x24-bit product an operator, which becomes DSPs.
//
// Thread contract: free functions of values.

#include <cstdint>

namespace sluice::hls_kernels {

inline constexpr std::uint32_t kSignBit = 0x80000000u;
inline constexpr std::uint32_t kInfinity = 0x7f800000u;
inline constexpr std::uint32_t kNan = 0x7fc00000u;

inline std::uint32_t sign_of(std::uint32_t bits) { return bits & kSignBit; }
inline bool is_zero(std::uint32_t bits) { return (bits & ~kSignBit) == 0; }
inline bool is_infinite(std::uint32_t bits) { return (bits & ~kSignBit) == kInfinity; }
inline bool is_nan(std::uint32_t bits) { return (bits & ~kSignBit) > kInfinity; }

// A finite value is significand_of * 2^(exponent_of - 150). A subnormal's significand begins lower.
inline int exponent_of(std::uint32_t bits) {
  const int field = static_cast<int>(bits >> 23 & 0xffu);
  return field == 0 ? 1 : field;
}
inline std::uint32_t significand_of(std::uint32_t bits) {
  const std::uint32_t hidden = (bits & kInfinity) == 0 ? 0u : 0x800000u;
  return (bits & 0x7fffffu) | hidden;
}

// The zeros above the first one in the lower WIDTH bits, which hold all of `value`. Each level
// keeps the half with the first one.
template <int WIDTH>
inline int leading_zeros(std::uint64_t value) {
#pragma HLS inline
  static_assert(WIDTH == 32 || WIDTH == 64, "the levels halve a power of two");
  constexpr int kLevels = WIDTH == 64 ? 6 : 5;
  int zeros = 0;
halve:
  for (int level = 0; level < kLevels; ++level) {
#pragma HLS unroll
    const int half = (WIDTH / 2) >> level;
    const std::uint64_t upper = value >> half;
    if (upper == 0) {
      zeros += half;
    } else {
      value = upper;
    }
  }
  return value == 0 ? zeros + 1 : zeros;
}

// The last bit of the result is set if a one was shifted out, so that a later rounding knows.
inline std::uint64_t shifted_right(std::uint64_t value, int distance) {
#pragma HLS inline
  if (distance > 63) return value != 0 ? 1u : 0u;
  const std::uint64_t lost = value & ((std::uint64_t{1} << distance) - 1);
  return value >> distance | (lost != 0 ? 1u : 0u);
}

// Bit 31 of `magnitude` weighs 2^(exponent - 127), and is clear only if `exponent` is 1. The bits
// below the upper 24 are rounded away; a carry goes on into the exponent, up to infinity.
inline std::uint32_t packed(std::uint32_t sign, int exponent, std::uint32_t magnitude) {
#pragma HLS inline
  const std::uint32_t kept = magnitude >> 8;
  const std::uint32_t rest = magnitude & 0xffu;
  const bool is_up = rest > 0x80u || (rest == 0x80u && (kept & 1u) != 0);
  // The leading bit of `kept` adds the one that is missing in the exponent.
  const std::uint32_t below = static_cast<std::uint32_t>(exponent - 1) << 23;
  const std::uint32_t rounded = below + kept + (is_up ? 1u : 0u);
  return sign | (rounded >= kInfinity ? kInfinity : rounded);
}

// As packed(), of a magnitude whose bit 31 is set, and with an exponent that may be below 1.
inline std::uint32_t packed_normal(std::uint32_t sign, int exponent, std::uint32_t magnitude) {
#pragma HLS inline
  if (exponent >= 1) return packed(sign, exponent, magnitude);
  return packed(sign, 1, static_cast<std::uint32_t>(shifted_right(magnitude, 1 - exponent)));
}

// Any magnitude but 0; bit 63 weighs 2^(exponent - 127). One shift, as far to the left as there
// are zeros, unless the least exponent is reached before.
inline std::uint32_t normalised_and_packed(std::uint32_t sign, int exponent,
                                           std::uint64_t magnitude) {
#pragma HLS inline
  const int zeros = leading_zeros<64>(magnitude);
  const int room = exponent - 1;
  const int left = zeros < room ? zeros : room;
  const std::uint64_t shifted = left >= 0 ? magnitude << left : shifted_right(magnitude, -left);
  const auto upper = static_cast<std::uint32_t>(shifted_right(shifted, 32));
  return packed(sign, exponent - left, upper);
}

inline std::uint32_t multiply(std::uint32_t a, std::uint32_t b) {
#pragma HLS inline
  const std::uint32_t sign = sign_of(a ^ b);
  if (is_nan(a) || is_nan(b)) return kNan;
  if (is_infinite(a) || is_infinite(b)) return is_zero(a) || is_zero(b) ? kNan : sign | kInfinity;
  if (is_zero(a) || is_zero(b)) return sign;
  const std::uint64_t product = static_cast<std::uint64_t>(significand_of(a)) * significand_of(b);
  return normalised_and_packed(sign, exponent_of(a) + exponent_of(b) - 126, product << 16);
}

// A number on its way through an addition: bit 62 of `magnitude`, the highest that may be set,
// weighs 2^(exponent - 127).
struct Addend {
  std::uint32_t sign;
  int exponent;
  std::uint64_t magnitude;
};

// Bits are lost, and jammed, only if the smaller one is shifted out of its lower zeros: 15 of a
// product, 39 of a single number. The larger one, which must then begin in bit 62, cannot be
// cancelled by more than a bit, so the jammed one stays below what is rounded.
inline std::uint32_t sum_of(const Addend& a, const Addend& b) {
#pragma HLS inline
  const bool is_a_larger = a.exponent >= b.exponent;
  const Addend& larger = is_a_larger ? a : b;
  const Addend& smaller = is_a_larger ? b : a;
  const std::uint64_t shifted =
      shifted_right(smaller.magnitude, larger.exponent - smaller.exponent);
  const bool is_sum = a.sign == b.sign;
  const bool is_swapped = !is_sum && shifted > larger.magnitude;
  const std::uint64_t difference =
      is_swapped ? shifted - larger.magnitude : larger.magnitude - shifted;
  const std::uint64_t magnitude = is_sum ? larger.magnitude + shifted : difference;
  // Two zeros of one sign keep it; whatever else comes to zero is +0.
  if (magnitude == 0) return is_sum ? a.sign : 0u;
  const std::uint32_t sign = is_swapped ? smaller.sign : larger.sign;
  return normalised_and_packed(sign, larger.exponent + 1, magnitude);
}

inline std::uint32_t add(std::uint32_t a, std::uint32_t b) {
#pragma HLS inline
  if (is_nan(a) || is_nan(b)) return kNan;
  if (is_infinite(a)) return is_infinite(b) && a != b ? kNan : a;
  if (is_infinite(b)) return b;
  const std::uint64_t magnitude_a = static_cast<std::uint64_t>(significand_of(a)) << 39;
  const std::uint64_t magnitude_b = static_cast<std::uint64_t>(significand_of(b)) << 39;
  return sum_of({sign_of(a), exponent_of(a), magnitude_a},
                {sign_of(b), exponent_of(b), magnitude_b});
}

// So that a zero never is the larger one of two addends.
inline constexpr int kExponentOfZero = -1024;

// a * b + c, rounded once. Product and addend both begin in bit 62, whatever was subnormal.
inline std::uint32_t fused_multiply_add(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
#pragma HLS inline
  const std::uint32_t sign = sign_of(a ^ b);
  if (is_nan(a) || is_nan(b) || is_nan(c)) return kNan;
  if (is_infinite(a) || is_infinite(b)) {
    if (is_zero(a) || is_zero(b)) return kNan;
    return is_infinite(c) && sign_of(c) != sign ? kNan : sign | kInfinity;
  }
  if (is_infinite(c)) return c;
  const std::uint64_t product = static_cast<std::uint64_t>(significand_of(a)) * significand_of(b);
  const int product_zeros = leading_zeros<64>(product);
  const int product_exponent = exponent_of(a) + exponent_of(b) - 110 - product_zeros;
  const std::uint64_t addend = significand_of(c);
  const int addend_zeros = leading_zeros<32>(addend);
  const int addend_exponent = exponent_of(c) + 8 - addend_zeros;
  return sum_of(
      {sign, product == 0 ? kExponentOfZero : product_exponent, product << (product_zeros - 1)},
      {sign_of(c), addend == 0 ? kExponentOfZero : addend_exponent, addend << (addend_zeros + 31)});
}

// The form in which divide() and square_root() begin: 24 bits, the first one set.
struct Normalised {
  int exponent;
  std::uint32_t significand;
};

inline Normalised normalised(std::uint32_t bits) {
#pragma HLS inline
  const std::uint32_t significand = significand_of(bits);
  const int left = leading_zeros<32>(significand) - 8;
  return {exponent_of(bits) - left, significand << left};
}

// Digits of a quotient or root: 24 to keep and one that rounds; the remainder says what follows.
inline constexpr int kDigits = 25;

inline std::uint32_t jammed_digits(std::uint32_t digits, std::uint32_t remainder) {
  return digits << 7 | (remainder != 0 ? 1u : 0u);
}

// The first digits of dividend / divisor, which is from 1 to below 2.
inline std::uint32_t quotient_digits(std::uint32_t dividend, std::uint32_t divisor) {
#pragma HLS inline
  std::uint32_t digits = 0;
  std::uint32_t remainder = dividend;
quotient_digit:
  for (int i = 0; i < kDigits; ++i) {
#pragma HLS unroll
    const bool is_one = remainder >= divisor;
    digits = digits << 1 | (is_one ? 1u : 0u);
    remainder = (is_one ? remainder - divisor : remainder) << 1;
  }
  return jammed_digits(digits, remainder);
}

inline std::uint32_t divide(std::uint32_t a, std::uint32_t b) {
#pragma HLS inline
  const std::uint32_t sign = sign_of(a ^ b);
  if (is_nan(a) || is_nan(b)) return kNan;
  if (is_infinite(a)) return is_infinite(b) ? kNan : sign | kInfinity;
  if (is_zero(b)) return is_zero(a) ? kNan : sign | kInfinity;
  if (is_zero(a) || is_infinite(b)) return sign;
  const Normalised dividend = normalised(a);
  const Normalised divisor = normalised(b);
  const int is_below_one = dividend.significand < divisor.significand ? 1 : 0;
  const int exponent = dividend.exponent - divisor.exponent + 127 - is_below_one;
  return packed_normal(sign, exponent,
                       quotient_digits(dividend.significand << is_below_one, divisor.significand));
}

// The first digits of the root of `radicand`, which has twice as many: each takes two of them.
inline std::uint32_t root_digits(std::uint64_t radicand) {
#pragma HLS inline
  std::uint32_t digits = 0;
  std::uint32_t remainder = 0;
root_digit:
  for (int i = 0; i < kDigits; ++i) {
#pragma HLS unroll
    const auto next = static_cast<std::uint32_t>(radicand >> (2 * (kDigits - 1 - i)) & 3u);
    remainder = remainder << 2 | next;
    const std::uint32_t trial = digits << 2 | 1u;
    const bool is_one = remainder >= trial;
    digits = digits << 1 | (is_one ? 1u : 0u);
    remainder = is_one ? remainder - trial : remainder;
  }
  return jammed_digits(digits, remainder);
}

// A root is never subnormal and never overflows.
inline std::uint32_t square_root(std::uint32_t a) {
#pragma HLS inline
  if (is_zero(a)) return a;
  if (is_nan(a) || sign_of(a) != 0) return kNan;
  if (is_infinite(a)) return a;
  const Normalised value = normalised(a);
  // Half of an odd biased exponent is whole, as that of 1 is 127.
  const int shift = (value.exponent & 1) != 0 ? kDigits : kDigits + 1;
  const std::uint64_t radicand = static_cast<std::uint64_t>(value.significand) << shift;
  return packed(0, (value.exponent + 127) >> 1, root_digits(radicand));
}

}  // namespace sluice::hls_kernels
