#pragma once
// The two 16-bit formats, converted with round-to-nearest-even. These scalar forms are the
// definition (D4); the SIMD kernels are tested against them bit by bit, on every input.
//
// Thread contract: free functions, any thread.

#include <bit>
#include <cstdint>

#include "base/parameter_span.h"

namespace sluice {

// NaN stays NaN (quiet bit set, so that a NaN whose payload lies in the cut bits does not become
// infinity).
constexpr std::uint16_t bf16_from_float(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

constexpr float float_from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

// Overflow goes to infinity, as IEEE 754 says for round-to-nearest.
constexpr std::uint16_t fp16_from_float(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u)
    return static_cast<std::uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
  if (magnitude >= 0x477ff000u)
    return static_cast<std::uint16_t>(sign | 0x7c00u);  // >= 65520 rounds to infinity
  if (magnitude < 0x38800000u) {                        // subnormal: below 2^-14
    if (magnitude < 0x33000000u) return sign;           // below half the smallest
    const std::uint32_t exponent = magnitude >> 23;
    const std::uint32_t mantissa = (magnitude & 0x7fffffu) | 0x800000u;
    const std::uint32_t shift = 126u - exponent;
    const std::uint32_t kept = mantissa >> shift;
    const std::uint32_t rest = mantissa & ((1u << shift) - 1u);
    const std::uint32_t half = 1u << (shift - 1u);
    const std::uint32_t up = rest > half || (rest == half && (kept & 1u)) ? 1u : 0u;
    return static_cast<std::uint16_t>(sign | (kept + up));
  }
  const std::uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  return static_cast<std::uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

// A signalling NaN becomes quiet, as IEEE 754 says for a conversion and as hardware does.
constexpr float float_from_fp16(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
  const std::uint32_t exponent = (half >> 10) & 0x1fu;
  std::uint32_t mantissa = half & 0x3ffu;
  if (exponent == 31) {
    const std::uint32_t quiet = mantissa != 0 ? 0x400000u : 0u;
    return std::bit_cast<float>(sign | 0x7f800000u | quiet | (mantissa << 13));
  }
  if (exponent != 0)
    return std::bit_cast<float>(sign | ((exponent + 112u) << 23) | (mantissa << 13));
  if (mantissa == 0) return std::bit_cast<float>(sign);
  std::uint32_t shift = 0;
  while ((mantissa & 0x400u) == 0) {
    mantissa <<= 1;
    ++shift;
  }
  return std::bit_cast<float>(sign | ((113u - shift) << 23) | ((mantissa & 0x3ffu) << 13));
}

constexpr std::uint16_t float16_from_float(Float16Kind kind, float value) {
  return kind == Float16Kind::bf16 ? bf16_from_float(value) : fp16_from_float(value);
}
constexpr float float_from_float16(Float16Kind kind, std::uint16_t bits) {
  return kind == Float16Kind::bf16 ? float_from_bf16(bits) : float_from_fp16(bits);
}

}  // namespace sluice
