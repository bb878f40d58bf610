#include "profiler/report/detail/step_pairs.h"

#include <catch2/catch.hpp>

namespace sluice::report::detail {
namespace {

std::vector<rundb::StepRow> steps(std::int64_t first, const std::vector<TimeNs>& durs) {
  std::vector<rundb::StepRow> rows;
  for (const TimeNs dur : durs) {
    rows.push_back({.id = first++, .dur = dur});
  }
  return rows;
}

}  // namespace

TEST_CASE("steps of two runs are paired by their number, around the medians of both") {
  //                                    0    1    2    3    4    5    6
  const auto a = steps(0, {900, 800, 100, 130, 101, 100, 100});
  const auto b = steps(0, {900, 800, 230, 200, 201, 300, 200});
  const std::vector<StepPair> pairs = paired_steps(a, b);
  REQUIRE(pairs.size() == 2);  // the last step that both have has none behind it
  CHECK(pairs[0].a.id == 5);
  CHECK(pairs[1].a.id == 6);
  CHECK(pairs[1].b.id == 6);
  CHECK(pairs[1].why == "nearest to both medians");
}

TEST_CASE("without a common step the median step of each is taken, and none of an empty run") {
  const std::vector<StepPair> pairs = paired_steps(steps(0, {9, 9, 5, 6, 7}), steps(50, {9, 9, 4}));
  REQUIRE(pairs.size() == 1);
  CHECK(pairs[0].a.id == 3);
  CHECK(pairs[0].b.id == 52);
  CHECK(paired_steps({}, steps(0, {1})).empty());
}

}  // namespace sluice::report::detail
