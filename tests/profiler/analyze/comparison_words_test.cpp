// One page, one average: what phases leave open of a difference, and causes that add up to the step
// that the headline has.

#include "profiler/analyze/comparison_words.h"

#include <catch2/catch.hpp>

#include "profiler/analyze/cause_pairs.h"
#include "profiler/analyze/run_analysis.h"

namespace sluice::analyze {
namespace {

// Steps of 3.51 s and 6.21 s; `update_b` in B, forward and backward within their noise.
Comparison compared(double update_b) {
  Comparison comparison;
  comparison.figures = {{"step_time", "s", 3.51, 6.21, 0.2},
                        {"forward", "s", 1.2, 1.4, 0.5},
                        {"backward", "s", 1.8, 2.2, 0.9},
                        {"update", "s", 0.5, update_b, 0.05}};
  return comparison;
}

}  // namespace

TEST_CASE("phases that explain little of a difference say how little") {
  CHECK(words_of(compared(0.779)).where ==
        "By phases: update takes 279 ms more; forward and backward differ by no more than noise. "
        "That is 10 % of the difference; the rest is in phases that scatter, whose medians do not "
        "add up to that of the steps.");
  CHECK(words_of(compared(2.9)).where ==
        "By phases: update takes 2.4 s more; forward and backward differ by no more than noise.");
  // The other way round explains nothing.
  CHECK_THAT(words_of(compared(0.3)).where, Catch::Contains("That is 0 % of the difference"));
  CHECK_THAT(words_of(compared(0.52)).where, Catch::Contains("That is 0 % of the difference"));
}

TEST_CASE("no difference beyond noise has nothing to explain") {
  Comparison comparison = compared(0.52);
  comparison.figures[0].b = 3.6;
  CHECK_THAT(words_of(comparison).where, !Catch::Contains("of the difference"));
}

TEST_CASE("causes of a run are all of the median step that the comparison has") {
  RunAnalysis a;
  a.dur = 3'900'000'000;  // of the steps that were looked at
  a.share[index_of(Cause::compute)] = 0.9;
  a.share[index_of(Cause::read)] = 0.1;
  RunAnalysis b = a;
  const std::vector<CausePair> causes = cause_pairs(a, b, compared(1));
  REQUIRE(causes.size() == 2);
  CHECK(causes[0].a_ns + causes[1].a_ns == Approx(3.51e9));
  CHECK(causes[0].b_ns + causes[1].b_ns == Approx(6.21e9));
  CHECK(causes[0].a_ns == Approx(0.9 * 3.51e9));
}

}  // namespace sluice::analyze
