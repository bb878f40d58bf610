#pragma once
// From the codes of split state to fp32 and back, one element at a time, bit-equal to
// base/state_codec.h, which defines them and says why they are so. All is in integers: the one
// subtraction of decoding a mean is exact, and the one addition of encoding it has no cancellation,
// so neither needs a general operator.
//
// Thread contract: free functions of values.

#include <cstdint>

#include "hls/kernels/float16.h"

namespace sluice::hls_kernels {

// The hash that rounds an element's codes, in two parts: the first product is of the first element
// of a turn, of which the others are a constant away.
inline constexpr std::uint32_t kMixIndex = 0x9E3779B1u;
inline constexpr std::uint32_t kMixHigh = 0x85EBCA77u;

// `flat_index`: of elements whose index has this upper half.
inline std::uint32_t mixed_index(std::uint64_t flat_index, std::uint32_t key) {
#pragma HLS inline
  const auto low = static_cast<std::uint32_t>(flat_index);
  const auto high = static_cast<std::uint32_t>(flat_index >> 32);
  return low * kMixIndex + (key ^ high * kMixHigh);
}
inline std::uint32_t mixed_bits(std::uint32_t hash) {
#pragma HLS inline
  const std::uint32_t once = (hash ^ hash >> 15) * 0x2C1B3C6Du;
  const std::uint32_t twice = (once ^ once >> 12) * 0x297A2D39u;
  return twice ^ twice >> 15;
}

// 16 steps a binade: codes of means and squares say 4 bits of the mantissa.
inline constexpr int kCodeShift = 19;

inline std::uint32_t mean_bias_exponent(std::uint32_t exponent) {
  return exponent > 8 ? exponent - 7 : 1u;
}

// (1 + f/16) 2^(bias + e) - 2^bias for the code's steps 16 e + f: a multiple of 2^(bias - 4) of 12
// bits, which is moved to where it begins as an fp32, or as far as a subnormal goes.
inline std::uint32_t decoded_mean(std::uint32_t code, std::uint32_t exponent) {
#pragma HLS inline
  const auto bias = static_cast<int>(mean_bias_exponent(exponent));
  const auto binade = static_cast<int>(code >> 4 & 7u);
  const std::uint32_t fraction = code & 15u;
  const std::uint32_t sign = (code >> 7) << 31;
  // Beyond the largest binade the bits are those of an infinity and of NaN.
  if (bias + binade > 254) return fraction == 0 ? sign | kInfinity : kNan;
  const std::uint32_t multiple = ((16u + fraction) << binade) - 16u;
  if (multiple == 0) return sign;
  const int to_first = leading_zeros<32>(multiple) - 8;
  const int to_subnormal = bias + 18;
  const bool is_normal = to_first <= to_subnormal;
  // The first bit adds one to the exponent.
  const int exponent_below = is_normal ? bias + 18 - to_first : 0;
  return sign | ((static_cast<std::uint32_t>(exponent_below) << 23) +
                 (multiple << (is_normal ? to_first : to_subnormal)));
}

// The sum of two magnitudes, the larger of which is normal, infinite or kNan.
inline std::uint32_t sum_of_magnitudes(std::uint32_t a, std::uint32_t b) {
#pragma HLS inline
  const std::uint32_t larger = a > b ? a : b;
  const std::uint32_t smaller = a > b ? b : a;
  if (larger >= kInfinity) return larger;
  const std::uint32_t moved = static_cast<std::uint32_t>(
      shifted_right(significand_of(smaller) << 7, exponent_of(larger) - exponent_of(smaller)));
  const std::uint32_t sum = (significand_of(larger) << 7) + moved;
  const bool is_carried = (sum & kSignBit) != 0;
  return packed(0, exponent_of(larger) + (is_carried ? 1 : 0), is_carried ? sum : sum << 1);
}

// `exponent`: of the largest magnitude of the group.
inline std::uint32_t mean_code(std::uint32_t bits, std::uint32_t exponent, std::uint32_t hash) {
#pragma HLS inline
  const std::uint32_t bias = mean_bias_exponent(exponent) << 23;
  const std::uint32_t biased = sum_of_magnitudes(bits & ~kSignBit, bias);
  const std::uint32_t steps = (biased - bias + (hash >> 13)) >> kCodeShift;
  return (steps < 127 ? steps : 127u) | bits >> 31 << 7;
}

// `largest`: bits of the largest of the group.
inline std::uint32_t decoded_square(std::uint32_t code, std::uint32_t largest) {
#pragma HLS inline
  const std::uint32_t bits = largest - ((255 - code) << kCodeShift);
  return code == 0 || sign_of(bits) != 0 ? 0u : bits;
}

inline std::uint32_t square_code(std::uint32_t bits, std::uint32_t largest, std::uint32_t hash) {
#pragma HLS inline
  if (bits == 0) return 0;
  const std::uint32_t steps = (largest - bits + (hash & 0x7ffffu)) >> kCodeShift;
  return steps < 254 ? 255 - steps : 1u;
}

// The bf16 copy of a master weight in the exact format, which is rounded to even.
inline bool is_rounded_from_tie(std::uint32_t bits) {
#pragma HLS inline
  return bits - (bf16_from_fp32(bits) << 16) == 0x8000u;
}

}  // namespace sluice::hls_kernels
