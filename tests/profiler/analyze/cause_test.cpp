#include "profiler/analyze/cause.h"

#include <catch2/catch.hpp>

namespace sluice::analyze {
namespace {

std::vector<int> rounded(const std::vector<double>& shares, int parts = 100) {
  return rounded_shares(shares, parts);
}

TEST_CASE("rounded shares add to what their sum is") {
  CHECK(rounded({0.335, 0.335, 0.33}) == std::vector<int>{34, 33, 33});
  CHECK(rounded({0.335, 0.335, 0.33}, 1000) == std::vector<int>{335, 335, 330});
  CHECK(rounded({1.0 / 3, 1.0 / 3, 1.0 / 3}, 1000) == std::vector<int>{334, 333, 333});
  CHECK(rounded({0.5, 0.2499}) == std::vector<int>{50, 25});
  CHECK(rounded({1}) == std::vector<int>{100});
  CHECK(rounded({}).empty());
}

}  // namespace
}  // namespace sluice::analyze
