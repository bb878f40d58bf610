#include "core/compress/top_k.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <set>

#include "tests/allocation_count.h"
#include "tests/core/compress/gradients.h"
#include "tests/core/optimizer/inputs.h"

namespace sluice::compress {
namespace {

Kept reference_of(const std::vector<float>& values, std::int64_t k) {
  Kept kept(k);
  top_k_reference(values, k, kept.room());
  return kept;
}

Kept select(const std::vector<float>& values, std::int64_t k, int slice_count,
            int thread_count = 1) {
  TopKSelector selector({.kept_capacity = k, .slice_count = slice_count});
  Kept kept(k);
  top_k(values, k, thread_count, selector, kept.room());
  return kept;
}

std::set<std::int64_t> kept_counts_to_try(std::int64_t count) {
  if (count == 0) return {0};
  return {0, 1, kept_count(0.01, count), kept_count(0.3, count), count - 1, count};
}

TEST_CASE("a density keeps its share of the elements, rounded up, and at least one") {
  CHECK(kept_count(0.01, 0) == 0);
  CHECK(kept_count(0.01, 1) == 1);
  CHECK(kept_count(0.01, 100) == 1);  // the double 0.01 is above a hundredth
  CHECK(kept_count(0.01, 101) == 2);
  CHECK(kept_count(0.01, 16 << 20) == 167'773);
  CHECK(kept_count(0.0157, 102'293) == 1607);  // 0.0157 x 1e9 is a little less than 15,700,000
  CHECK(kept_count(0.1, 30) == 3);
  CHECK(kept_count(0, 5) == 1);
  CHECK(kept_count(1e-12, 5) == 1);
  for (const std::int64_t count : {std::int64_t{1}, std::int64_t{17}, kMaxElements})
    CHECK(kept_count(1, count) == count);
  CHECK(kept_count(0.5, kMaxElements) == kMaxElements / 2);
}

TEST_CASE("NaN ranks above infinity, infinity above numbers, -0 equals 0") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> values = {-0.0f, 1e-45f, 3.0f, -infinity, 0.0f, -nan, -3.0f};
  const auto indices_of = [&](std::int64_t k) {
    const Kept kept = select(values, k, 1);
    return std::vector<std::uint32_t>(kept.indices.begin(), kept.indices.begin() + k);
  };
  CHECK(indices_of(1) == std::vector<std::uint32_t>{5});
  CHECK(indices_of(2) == std::vector<std::uint32_t>{3, 5});
  CHECK(indices_of(3) == std::vector<std::uint32_t>{2, 3, 5});  // of 3 and -3 the first
  CHECK(indices_of(4) == std::vector<std::uint32_t>{2, 3, 5, 6});
  CHECK(indices_of(5) == std::vector<std::uint32_t>{1, 2, 3, 5, 6});
  CHECK(indices_of(6) == std::vector<std::uint32_t>{0, 1, 2, 3, 5, 6});
}

TEST_CASE("the selection equals the sorted reference for every shape, size, k and slice count") {
  for (const std::int64_t count : {0, 1, 15, 16, 17, 63, 64, 65, 100, 1'000, 4'099}) {
    for (const NamedGradient& gradient : gradients_of_every_shape(count, 3)) {
      for (const std::int64_t k : kept_counts_to_try(count)) {
        const Kept expected = reference_of(gradient.values, k);
        for (const int slice_count : {1, 2, 3, 7}) {
          const Kept actual = select(gradient.values, k, slice_count);
          CAPTURE(count, gradient.name, k, slice_count);
          if (!actual.same_bits(expected)) FAIL("another selection");
        }
      }
    }
  }
  SUCCEED();
}

TEST_CASE("the selection equals the reference on every instruction set") {
  for (const NamedGradient& gradient : gradients_of_every_shape(50'003, 5)) {
    const std::int64_t k = kept_count(0.01, 50'003);
    const Kept expected = reference_of(gradient.values, k);
    optimizer::for_each_simd_target([&](const std::string& target) {
      CAPTURE(target, gradient.name);
      CHECK(select(gradient.values, k, 2).same_bits(expected));
    });
  }
}

TEST_CASE("the result has the same bits for every number of threads") {
  for (const NamedGradient& gradient : gradients_of_every_shape(200'000, 7)) {
    const Kept expected = select(gradient.values, 2'000, 1);
    for (const int thread_count : {2, 3, 8}) {
      CAPTURE(gradient.name, thread_count);
      CHECK(select(gradient.values, 2'000, thread_count, thread_count).same_bits(expected));
    }
    CAPTURE(gradient.name);
    CHECK(select(gradient.values, 2'000, 2, 5).same_bits(expected));  // more threads than slices
  }
}

TEST_CASE("a selector can be used again, for other sizes and other k") {
  TopKSelector selector({.kept_capacity = 500, .slice_count = 3});
  for (const std::int64_t count : {5'000, 70, 20'000, 600}) {
    const std::vector<float> values =
        optimizer::normal_floats(count, 1, static_cast<std::uint32_t>(count));
    for (const std::int64_t k : {std::int64_t{1}, std::min<std::int64_t>(count, 500)}) {
      Kept kept(k);
      top_k(values, k, 1, selector, kept.room());
      CHECK(kept.same_bits(reference_of(values, k)));
    }
  }
}

TEST_CASE("a room larger than k is filled with k only") {
  const std::vector<float> values = optimizer::normal_floats(10'000, 1, 9);
  TopKSelector selector({.kept_capacity = 100, .slice_count = 2});
  Kept kept(150);
  top_k(values, 100, 2, selector, kept.room());
  Kept expected(150);
  top_k_reference(values, 100, expected.room());
  CHECK(kept.same_bits(expected));
}

TEST_CASE("selecting on one thread, or by phases, allocates nothing") {
  const std::vector<float> values = optimizer::normal_floats(100'000, 1, 11);
  std::vector<float> residual(values.size());
  TopKSelector selector({.kept_capacity = 1'000, .slice_count = 2});
  Kept kept(1'000);
  const std::int64_t before = allocation_count();
  top_k(values, 1'000, 1, selector, kept.room());
  top_k({.gradient = values, .scale = 0.5f, .residual = residual}, 1'000, 1, selector, kept.room());
  CHECK(allocation_count() == before);
}

}  // namespace
}  // namespace sluice::compress
