#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>

#include "base/float16.h"
#include "core/optimizer/gradient_stats.h"
#include "tests/core/optimizer/inputs.h"

namespace sluice::optimizer {
namespace {

std::vector<std::uint16_t> all_halves() {
  std::vector<std::uint16_t> halves(0x10000);
  std::iota(halves.begin(), halves.end(), std::uint16_t{0});
  return halves;
}

// Special values, and every 16-bit value's neighbourhood: itself, the middle to the next, and the
// floats beside these.
std::vector<float> floats_to_narrow(Float16Kind kind) {
  std::vector<float> values = special_floats();
  for (const std::uint16_t half : all_halves()) {
    const float exact = float_from_float16(kind, half);
    const float next = float_from_float16(kind, static_cast<std::uint16_t>(half + 1));
    for (const float center : {exact, exact + (next - exact) / 2}) {
      const auto bits = std::bit_cast<std::uint32_t>(center);
      for (const int step : {-1, 0, 1}) values.push_back(std::bit_cast<float>(bits + step));
    }
  }
  const std::vector<float> random = random_bit_floats(100'000, 3);
  values.insert(values.end(), random.begin(), random.end());
  return values;
}

TEST_CASE("widening equals the definition on every 16-bit value") {
  const std::vector<std::uint16_t> halves = all_halves();
  for (const Float16Kind kind : {Float16Kind::bf16, Float16Kind::fp16}) {
    std::vector<float> expected;
    for (const std::uint16_t half : halves) expected.push_back(float_from_float16(kind, half));
    for_each_simd_target([&](const std::string& target) {
      std::vector<float> actual(halves.size());
      widen(halves.data(), kind, actual.data(), static_cast<std::int64_t>(halves.size()));
      CAPTURE(target, kind);
      CHECK(bits_of(actual) == bits_of(expected));
    });
  }
}

TEST_CASE("narrowing equals the definition on special values, midpoints and arbitrary bits") {
  for (const Float16Kind kind : {Float16Kind::bf16, Float16Kind::fp16}) {
    const std::vector<float> values = floats_to_narrow(kind);
    std::vector<std::uint16_t> expected;
    for (const float value : values) expected.push_back(float16_from_float(kind, value));
    for_each_simd_target([&](const std::string& target) {
      std::vector<std::uint16_t> actual(values.size());
      narrow(values.data(), kind, actual.data(), static_cast<std::int64_t>(values.size()));
      CAPTURE(target, kind);
      CHECK(actual == expected);
    });
  }
}

TEST_CASE("accumulating adds in fp32 and stores one NaN for every NaN") {
  const std::vector<std::uint16_t> gradient = all_halves();
  std::vector<float> before = random_bit_floats(0x10000, 5);
  const std::vector<float> normal = normal_floats(0x8000, 1.0f, 6);
  for (std::size_t i = 0; i < normal.size(); ++i) before[2 * i] = normal[i];
  for (const Float16Kind kind : {Float16Kind::bf16, Float16Kind::fp16}) {
    std::vector<float> expected;
    for (std::size_t i = 0; i < before.size(); ++i) {
      const float sum = before[i] + float_from_float16(kind, gradient[i]);
      expected.push_back(std::isnan(sum) ? std::bit_cast<float>(0x7fc00000u) : sum);
    }
    for_each_simd_target([&](const std::string& target) {
      std::vector<float> actual = before;
      accumulate(gradient.data(), kind, actual.data(), static_cast<std::int64_t>(actual.size()));
      CAPTURE(target, kind);
      CHECK(bits_of(actual) == bits_of(expected));
    });
  }
}

TEST_CASE("the conversions do exactly their elements, at every length and offset") {
  const std::vector<std::uint16_t> halves = random_halves(260, 7);
  const std::vector<float> floats = random_bit_floats(260, 8);
  const std::vector<std::uint16_t> untouched_halves(260, 0x1234);
  const std::vector<float> untouched_floats(260, 17.0f);
  for_each_simd_target([&](const std::string& target) {
    int wrong = 0;
    for (std::size_t count = 0; count <= 200; ++count) {
      const Float16Kind kind = count % 2 == 0 ? Float16Kind::bf16 : Float16Kind::fp16;
      const std::size_t first = count % 7;
      const auto element_count = static_cast<std::int64_t>(count);
      std::vector<float> widened = untouched_floats, expected_widened = untouched_floats;
      std::vector<float> sum = untouched_floats, expected_sum = untouched_floats;
      std::vector<std::uint16_t> narrowed = untouched_halves, expected_narrowed = untouched_halves;
      for (std::size_t i = first; i < first + count; ++i) {
        expected_widened[i] = float_from_float16(kind, halves[i]);
        expected_sum[i] = stored_float(17.0f + expected_widened[i]);
        expected_narrowed[i] = float16_from_float(kind, floats[i]);
      }
      widen(halves.data() + first, kind, widened.data() + first, element_count);
      accumulate(halves.data() + first, kind, sum.data() + first, element_count);
      narrow(floats.data() + first, kind, narrowed.data() + first, element_count);
      wrong += bits_of(widened) != bits_of(expected_widened);
      wrong += bits_of(sum) != bits_of(expected_sum);
      wrong += narrowed != expected_narrowed;
    }
    CAPTURE(target);
    CHECK(wrong == 0);
  });
}

}  // namespace
}  // namespace sluice::optimizer
