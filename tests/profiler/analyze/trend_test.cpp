#include "profiler/analyze/trend.h"

#include <catch2/catch.hpp>
#include <random>

namespace sluice::analyze {
namespace {

// Around `level`, with a scatter of two per cent.
void add(std::vector<double>& values, std::size_t count, double level, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> noise(0, 0.02 * level);
  for (std::size_t i = 0; i < count; ++i) values.push_back(level + noise(random));
}

}  // namespace

TEST_CASE("medians and noise are those of a sorted list") {
  CHECK(median_of({3}) == 3);
  CHECK(median_of({9, 1, 3}) == 3);
  CHECK(median_of({9, 1, 3, 5}) == 4);
  const std::vector<double> values = {1, 2, 3, 4, 100};
  CHECK(noise_of(values, 3) == Approx(1.4826));  // deviations 2 1 0 1 97
}

TEST_CASE("steady steps have no change and no outlier") {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    std::vector<double> values;
    add(values, 200, 1.0, seed);
    const Trend trend = trend_of(values);
    CHECK(trend.changes.empty());
    CHECK(trend.outliers.empty());
    CHECK(trend.median == Approx(1.0).epsilon(0.01));
    CHECK(trend.noise == Approx(0.02).epsilon(0.5));
  }
}

TEST_CASE("a change is found where it was made, up and down") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    std::vector<double> values;
    add(values, 60, 1.0, seed);
    add(values, 80, 1.5, seed + 100);
    add(values, 40, 1.2, seed + 200);
    const Trend trend = trend_of(values);
    REQUIRE(trend.changes.size() == 2);
    CHECK(trend.changes[0].index == 60);
    CHECK(trend.changes[0].before == Approx(1.0).epsilon(0.02));
    CHECK(trend.changes[0].after == Approx(1.5).epsilon(0.02));
    CHECK(trend.changes[1].index == 140);
    CHECK(trend.changes[1].after == Approx(1.2).epsilon(0.02));
  }
}

TEST_CASE("a bump between two known cuts is a change and back, not fifteen slow steps") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    std::vector<double> values;
    add(values, 35, 1.0, seed);
    add(values, 15, 1.4, seed + 100);
    add(values, 50, 1.0, seed + 200);
    const Trend trend = trend_of(values, std::vector<std::size_t>{35, 50});
    REQUIRE(trend.changes.size() == 2);
    CHECK(trend.changes[0].index == 35);
    CHECK(trend.changes[1].index == 50);
    CHECK(trend.outliers.empty());
  }
}

TEST_CASE("a known cut that changed nothing is no change, and hides none") {
  std::vector<double> values;
  add(values, 60, 1.0, 1);
  add(values, 60, 1.5, 2);
  // Too near each other or to an end, changing nothing, far off.
  const std::vector<std::size_t> known = {0, 2, 20, 22, 40, 90, 118, 120, 500};
  const Trend trend = trend_of(values, known);
  REQUIRE(trend.changes.size() == 1);
  CHECK(trend.changes[0].index == 60);
  CHECK(trend_of(std::vector<double>{1.0}, known).changes.empty());
}

TEST_CASE("a bump of a few steps between two known changes is no row of slow steps") {
  // As `set --revert-if` leaves it: four steps with a worse setting; or fewer, and the run is live.
  for (const std::size_t length : {1, 2, 3, 4, 5, 8}) {
    std::vector<double> values;
    add(values, 40, 1.0, 1);
    add(values, length, 1.4, 2);
    const std::vector<std::size_t> changed = {40};
    INFO(length);
    CHECK(trend_of(values, changed).outliers.empty());
    add(values, 40, 1.0, 3);
    const std::vector<std::size_t> and_back = {40, 40 + length};
    CHECK(trend_of(values, and_back).outliers.empty());
    // A stall beside it is still seen.
    values[60] = 3;
    CHECK(trend_of(values, and_back).outliers == std::vector<std::size_t>{60});
  }
}

TEST_CASE("a change of less than the noise is none") {
  std::vector<double> values;
  add(values, 100, 1.0, 1);
  add(values, 100, 1.02, 2);
  CHECK(trend_of(values).changes.empty());
}

TEST_CASE("steps that stand out are told from a change, and the worst do not hide the others") {
  std::vector<double> values;
  add(values, 100, 1.0, 3);
  values[30] = 9;
  values[70] = 1.5;
  const Trend trend = trend_of(values);
  CHECK(trend.changes.empty());
  CHECK(trend.outliers == std::vector<std::size_t>{30, 70});
}

TEST_CASE("few steps are enough to be looked at, and none are no trend") {
  CHECK(trend_of({}).changes.empty());
  CHECK(trend_of(std::vector<double>{2.0}).median == 2.0);
  CHECK(trend_of(std::vector<double>{1, 1, 5}).changes.empty());
  // Without any noise a single step stands out if it is a fifth longer.
  CHECK(trend_of(std::vector<double>{1, 1, 1, 1, 1.1, 1, 1, 1}).outliers.empty());
  CHECK(trend_of(std::vector<double>{1, 1, 1, 1, 1.3, 1, 1, 1}).outliers ==
        std::vector<std::size_t>{4});
}

}  // namespace sluice::analyze
