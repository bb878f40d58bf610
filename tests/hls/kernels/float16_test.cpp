#include "base/float16.h"

#include <catch2/catch.hpp>

#include "hls/kernels/float16.h"
#include "tests/hls/kernels/operands.h"

namespace sluice::hls_kernels {
namespace {

bool narrows_as_defined(std::uint32_t bits) {
  const auto value = std::bit_cast<float>(bits);
  return bf16_from_fp32(bits) == bf16_from_float(value) &&
         fp16_from_fp32(bits) == fp16_from_float(value);
}

TEST_CASE("every half widens as base/float16.h says, and narrows to itself") {
  int wrong = 0;
  for (std::uint32_t half = 0; half <= 0xffffu; ++half) {
    const auto narrow = static_cast<std::uint16_t>(half);
    const std::uint32_t from_bf16 = fp32_from_bf16(half);
    const std::uint32_t from_fp16 = fp32_from_fp16(half);
    wrong += from_bf16 != std::bit_cast<std::uint32_t>(float_from_bf16(narrow));
    wrong += from_fp16 != std::bit_cast<std::uint32_t>(float_from_fp16(narrow));
    wrong += !narrows_as_defined(from_bf16) + !narrows_as_defined(from_fp16);
  }
  CHECK(wrong == 0);
}

TEST_CASE("floats narrow as base/float16.h says") {
  std::int64_t wrong = 0;
  // Every upper half of the bits, with what decides the rounding of either format around its ties.
  for (std::uint64_t upper = 0; upper <= 0xffffffffu; upper += 0x1000u) {
    for (const std::uint32_t lower : {0x000u, 0x001u, 0x7ffu, 0x800u, 0x801u, 0xfffu})
      wrong += !narrows_as_defined(static_cast<std::uint32_t>(upper) | lower);
  }
  OperandSource source(3);
  for (int i = 0; i < 2'000'000; ++i) wrong += !narrows_as_defined(source.any_bits());
  CHECK(wrong == 0);
}

TEST_CASE("every float narrows as base/float16.h says", "[.soak]") {
  std::int64_t wrong = 0;
  for (std::uint64_t bits = 0; bits <= 0xffffffffu; ++bits)
    wrong += !narrows_as_defined(static_cast<std::uint32_t>(bits));
  CHECK(wrong == 0);
}

}  // namespace
}  // namespace sluice::hls_kernels
