#include "base/float16.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <random>
#include <vector>

namespace sluice {
namespace {

__extension__ using CompilerHalf = _Float16;

std::uint32_t bits_of(float value) { return std::bit_cast<std::uint32_t>(value); }

float compiler_float_from_fp16(std::uint16_t bits) {
  return static_cast<float>(std::bit_cast<CompilerHalf>(bits));
}
std::uint16_t compiler_fp16_from_float(float value) {
  return std::bit_cast<std::uint16_t>(static_cast<CompilerHalf>(value));
}

// Round to nearest even by looking at the two neighbours, in double, where both are exact. Infinity
// stands at 2^128, one step above the largest finite bf16.
std::uint16_t nearest_bf16(float value) {
  const auto below = static_cast<std::uint16_t>(bits_of(value) >> 16);
  const auto magnitude_of = [](std::uint16_t bits) {
    return (bits & 0x7fff) == 0x7f80 ? std::ldexp(1.0, 128)
                                     : std::abs(static_cast<double>(float_from_bf16(bits)));
  };
  const double exact = std::abs(static_cast<double>(value));
  if (exact == magnitude_of(below) || std::isinf(value)) return below;
  const auto above = static_cast<std::uint16_t>(below + 1);  // away from zero, of the same sign
  const double to_below = exact - magnitude_of(below);
  const double to_above = magnitude_of(above) - exact;
  if (to_below != to_above) return to_below < to_above ? below : above;
  return (below & 1) == 0 ? below : above;
}

// Floats around which rounding to fp16 changes: every half, the middle between it and the next, and
// the floats beside these; then a walk over all exponents and many mantissas; then random bits.
std::vector<float> floats_to_round() {
  std::vector<float> values;
  for (std::uint32_t half = 0; half < 0x10000; ++half) {
    const float exact = float_from_fp16(static_cast<std::uint16_t>(half));
    const std::uint32_t exact_bits = bits_of(exact);
    const float next = float_from_fp16(static_cast<std::uint16_t>(half + 1));
    const std::uint32_t middle_bits = bits_of(exact + (next - exact) / 2);
    for (const std::uint32_t center : {exact_bits, middle_bits}) {
      for (const int step : {-1, 0, 1}) values.push_back(std::bit_cast<float>(center + step));
    }
  }
  for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32); bits += 4093)
    values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  std::mt19937 random(1);
  for (int i = 0; i < 1'000'000; ++i)
    values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
  return values;
}

TEST_CASE("every fp16 value widens as the compiler's own conversion does") {
  int wrong = 0;
  for (std::uint32_t half = 0; half < 0x10000; ++half) {
    const auto bits = static_cast<std::uint16_t>(half);
    if (bits_of(float_from_fp16(bits)) != bits_of(compiler_float_from_fp16(bits))) ++wrong;
  }
  CHECK(wrong == 0);
}

TEST_CASE("every 16-bit value survives widening and narrowing, NaN as a quiet NaN") {
  int wrong = 0;
  for (std::uint32_t i = 0; i < 0x10000; ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    const auto fp16_quiet = static_cast<std::uint16_t>((bits & 0x7fff) > 0x7c00 ? bits | 0x200 : i);
    const auto bf16_quiet = static_cast<std::uint16_t>((bits & 0x7fff) > 0x7f80 ? bits | 0x40 : i);
    if (fp16_from_float(float_from_fp16(bits)) != fp16_quiet) ++wrong;
    if (bf16_from_float(float_from_bf16(bits)) != bf16_quiet) ++wrong;
  }
  CHECK(wrong == 0);
}

TEST_CASE("fp16 rounds as the compiler's own conversion does, at every midpoint and beside it") {
  std::size_t wrong = 0;
  for (const float value : floats_to_round()) {
    if (fp16_from_float(value) != compiler_fp16_from_float(value)) ++wrong;
  }
  CHECK(wrong == 0);
}

TEST_CASE("bf16 rounds to the nearest of its two neighbours, ties to even") {
  std::vector<float> values = floats_to_round();
  for (std::uint32_t i = 0; i < 0x10000; ++i) {
    for (const std::uint32_t low : {0x0000u, 0x0001u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu})
      values.push_back(std::bit_cast<float>((i << 16) | low));
  }
  std::size_t wrong = 0;
  for (const float value : values) {
    if (!std::isnan(value) && bf16_from_float(value) != nearest_bf16(value)) ++wrong;
  }
  CHECK(wrong == 0);
}

TEST_CASE("NaN stays NaN even if its payload lies only in the bits that are cut") {
  for (const std::uint32_t sign : {0u, 0x80000000u}) {
    for (const std::uint32_t payload : {1u, 0x1fffu, 0xffffu, 0x400000u, 0x7fffffu}) {
      const float nan = std::bit_cast<float>(sign | 0x7f800000u | payload);
      const std::uint16_t sign_bit = sign != 0 ? 0x8000 : 0;
      CHECK(std::isnan(float_from_bf16(bf16_from_float(nan))));
      CHECK(std::isnan(float_from_fp16(fp16_from_float(nan))));
      CHECK((bf16_from_float(nan) & 0x8000) == sign_bit);
      CHECK((fp16_from_float(nan) & 0x8000) == sign_bit);
    }
  }
}

TEST_CASE("the largest values round to the largest finite value or to infinity") {
  CHECK(fp16_from_float(65504.0f) == 0x7bff);
  CHECK(fp16_from_float(65519.99f) == 0x7bff);
  CHECK(fp16_from_float(65520.0f) == 0x7c00);
  CHECK(fp16_from_float(-65520.0f) == 0xfc00);
  CHECK(bf16_from_float(3.3895314e38f) == 0x7f7f);
  CHECK(bf16_from_float(3.4028235e38f) == 0x7f80);
  CHECK(fp16_from_float(std::ldexp(1.0f, -24)) == 0x0001);
  CHECK(fp16_from_float(std::ldexp(1.0f, -25)) == 0x0000);
  CHECK(fp16_from_float(std::nextafter(std::ldexp(1.0f, -25), 1.0f)) == 0x0001);
}

TEST_CASE("a conversion by kind is that kind's conversion") {
  CHECK(float16_from_float(Float16Kind::bf16, 1.5f) == 0x3fc0);
  CHECK(float16_from_float(Float16Kind::fp16, 1.5f) == 0x3e00);
  CHECK(float_from_float16(Float16Kind::bf16, 0x3fc0) == 1.5f);
  CHECK(float_from_float16(Float16Kind::fp16, 0x3e00) == 1.5f);
}

}  // namespace
}  // namespace sluice
