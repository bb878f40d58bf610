#pragma once
// The two 16-bit formats in integers, bit-equal to base/float16.h, which defines them: round to
// nearest even, subnormals kept, a NaN stays one. A half is in the lower 16 bits.
//
// Thread contract: free functions of values.

#include <cstdint>

#include "hls/kernels/ieee.h"

namespace sluice::hls_kernels {

inline std::uint32_t fp32_from_bf16(std::uint32_t half) { return half << 16; }

inline std::uint32_t bf16_from_fp32(std::uint32_t bits) {
#pragma HLS inline
  if (is_nan(bits)) return bits >> 16 | 0x40u;
  return (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
}

inline std::uint32_t fp32_from_fp16(std::uint32_t half) {
#pragma HLS inline
  const std::uint32_t sign = (half & 0x8000u) << 16;
  const std::uint32_t exponent = half >> 10 & 0x1fu;
  const std::uint32_t mantissa = half & 0x3ffu;
  if (exponent == 31) return sign | kInfinity | mantissa << 13 | (mantissa != 0 ? 0x400000u : 0u);
  if (exponent != 0) return sign | (exponent + 112) << 23 | mantissa << 13;
  if (mantissa == 0) return sign;
  // A subnormal: its first one becomes bit 23 and adds the one that is missing in the exponent.
  const int left = leading_zeros<32>(mantissa) - 8;
  return sign | ((static_cast<std::uint32_t>(125 - left) << 23) + (mantissa << left));
}

inline std::uint32_t fp16_from_fp32(std::uint32_t bits) {
#pragma HLS inline
  const std::uint32_t sign = sign_of(bits) >> 16;
  if (is_nan(bits)) return sign | 0x7e00u | (bits >> 13 & 0x3ffu);
  // Below 2^-14 the distance between halves stays as it is, so more is cut; 25 cuts all.
  const int exponent = exponent_of(bits);
  const int below = exponent < 113 ? 113 - exponent : 0;
  const int cut = below < 12 ? 13 + below : 25;
  const std::uint32_t significand = significand_of(bits);
  const std::uint32_t kept = significand >> cut;
  const std::uint32_t rest = significand & ((1u << cut) - 1);
  const std::uint32_t half = 1u << (cut - 1);
  const std::uint32_t up = rest > half || (rest == half && (kept & 1u) != 0) ? 1u : 0u;
  const std::uint32_t before = exponent < 113 ? 0u : static_cast<std::uint32_t>(exponent - 113);
  const std::uint32_t rounded = (before << 10) + kept + up;
  return sign | (rounded > 0x7c00u ? 0x7c00u : rounded);
}

}  // namespace sluice::hls_kernels
