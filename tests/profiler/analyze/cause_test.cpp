#include "profiler/analyze/cause.h"

#include <catch2/catch.hpp>

#include "profiler/analyze/whole_percents.h"

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

TEST_CASE("whole per cent of all causes add to a hundred") {
  std::array<double, kCauseCount> shares{};
  shares[index_of(Cause::compute)] = 0.914;
  shares[index_of(Cause::read)] = 0.043;
  shares[index_of(Cause::other)] = 0.043;
  const auto percents = whole_percents(shares);
  CHECK(percents[index_of(Cause::compute)] == 92);
  CHECK(percents[index_of(Cause::read)] == 4);
  CHECK(percents[index_of(Cause::other)] == 4);
  CHECK(percents[index_of(Cause::write)] == 0);
}

}  // namespace
}  // namespace sluice::analyze
