#include "core/data/permutation.h"

#include <catch2/catch.hpp>
#include <vector>

namespace sluice::data {
namespace {

std::vector<std::uint64_t> order(std::uint64_t key, std::uint64_t count) {
  const Permutation permutation(key, count);
  std::vector<std::uint64_t> indices;
  for (std::uint64_t i = 0; i < count; ++i) indices.push_back(permutation(i));
  return indices;
}

TEST_CASE("a permutation visits every index once, whatever the count") {
  for (const std::uint64_t count : {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 63, 64, 65, 1000, 30'703}) {
    std::vector<bool> seen(count, false);
    for (const std::uint64_t index : order(42, count)) {
      REQUIRE(index < count);
      REQUIRE_FALSE(seen[index]);
      seen[index] = true;
    }
  }
}

TEST_CASE("a key gives one order, another key another") {
  CHECK(order(1, 1000) == order(1, 1000));
  CHECK(order(1, 1000) != order(2, 1000));
}

TEST_CASE("the order is mixed: neighbours do not stay neighbours") {
  const std::vector<std::uint64_t> indices = order(7, 10'000);
  int neighbours = 0;
  int fixed = 0;
  for (std::size_t i = 0; i + 1 < indices.size(); ++i) {
    const std::uint64_t a = indices[i], b = indices[i + 1];
    if (a + 1 == b || b + 1 == a) ++neighbours;
    if (a == i) ++fixed;
  }
  // A random order has 2 and 1 of them in the mean; ten is far outside chance.
  CHECK(neighbours < 10);
  CHECK(fixed < 10);
}

TEST_CASE("a count near the top of 64 bits still lands inside") {
  const std::uint64_t count = (std::uint64_t{1} << 62) + 3;
  const Permutation permutation(5, count);
  for (const std::uint64_t index : {std::uint64_t{0}, std::uint64_t{1}, count / 2, count - 1}) {
    CHECK(permutation(index) < count);
  }
}

}  // namespace
}  // namespace sluice::data
