#pragma once
// Sums of squares of binary32 in binary64, as a template argument. The square of a float is exact
// in a double, so square() and add() come to fma(g, g, sum), and no sum of kMaxElements squares is
// negative, subnormal or infinite: the adder needs none of these. Both give the same bits:
//
//   IntegerSum   on the bits of a double; what is synthesised
//   NativeSum    the processor's own; only under g++, for speed
//
// Thread contract: free functions of values. NativeSum needs the default floating-point mode.

#include <cstdint>

#include "hls/kernels/ieee.h"

#ifndef __SYNTHESIS__
#include <bit>
#endif

namespace sluice::hls_kernels {

struct IntegerSum {
  using Value = std::uint64_t;  // +0, or a positive normal number
  static Value from_bits(std::uint64_t bits) { return bits; }
  static std::uint64_t to_bits(Value value) { return value; }
  static Value zero() { return 0; }

  // For any finite gradient, whose square begins in bit 46 or 47 of the product.
  static Value square(std::uint32_t gradient) {
#pragma HLS inline
    if (is_zero(gradient)) return 0;
    const Normalised value = normalised(gradient);
    const std::uint64_t product = static_cast<std::uint64_t>(value.significand) * value.significand;
    const bool is_upper = product >> 47 != 0;
    // Less by one, as the leading bit of the product adds it.
    const auto exponent = static_cast<std::uint64_t>(2 * value.exponent + (is_upper ? 769 : 768));
    return (exponent << 52) + (product << (is_upper ? 5 : 6));
  }

  static Value add(Value a, Value b) {
#pragma HLS inline
    const Value larger = a >= b ? a : b;
    const Value smaller = a >= b ? b : a;
    if (smaller == 0) return larger;
    const auto distance = static_cast<int>((larger >> 52) - (smaller >> 52));
    // Three bits below the last place: one may be carried away, one rounds, one says what was lost.
    const std::uint64_t sum =
        (significand(larger) << 3) + shifted_right(significand(smaller) << 3, distance);
    const std::uint64_t carry = sum >> 56;
    const std::uint64_t rounded = carry != 0 ? shifted_right(sum, 1) : sum;
    const std::uint64_t kept = rounded >> 3;
    const std::uint64_t rest = rounded & 7u;
    const std::uint64_t up = rest > 4 || (rest == 4 && (kept & 1u) != 0) ? 1 : 0;
    return (((larger >> 52) + carry - 1) << 52) + kept + up;
  }

 private:
  static std::uint64_t significand(Value value) {
    constexpr std::uint64_t kHidden = std::uint64_t{1} << 52;
    return (value & (kHidden - 1)) | kHidden;
  }
};

#ifndef __SYNTHESIS__

struct NativeSum {
  using Value = double;
  static Value from_bits(std::uint64_t bits) { return std::bit_cast<double>(bits); }
  static std::uint64_t to_bits(Value value) { return std::bit_cast<std::uint64_t>(value); }
  static Value zero() { return 0; }
  static Value square(std::uint32_t gradient) {
    const double value = std::bit_cast<float>(gradient);
    return value * value;
  }
  static Value add(Value a, Value b) { return a + b; }
};

#endif

#if defined(__SYNTHESIS__) || defined(HLS_INTEGER_ARITHMETIC)
using KernelSum = IntegerSum;
#else
using KernelSum = NativeSum;
#endif

}  // namespace sluice::hls_kernels
