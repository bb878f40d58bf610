#include "profiler/runs/run_curves.h"

#include <cmath>
#include <random>

#include "tests/profiler/runs/made_runs.h"

namespace sluice::runs {
namespace {

// The same by its definition: a weighted mean of all values up to there.
double plain_mean(const std::vector<CurvePoint>& points, std::size_t at, double weight) {
  double sum = 0;
  double total = 0;
  for (std::size_t i = 0; i <= at; ++i) {
    if (std::isnan(points[i].value)) continue;
    const double counts = std::pow(weight, static_cast<double>(points[at].step - points[i].step));
    sum += counts * points[i].value;
    total += counts;
  }
  return sum / total;
}

}  // namespace

TEST_CASE("a smoothed curve is the weighted mean that its formula says") {
  std::mt19937 source(7);
  std::vector<CurvePoint> points;
  for (std::int64_t step = 0; points.size() < 60; step += 1 + source() % 4) {
    const bool is_none = source() % 7 == 0;
    points.push_back({step, is_none ? std::nan("") : static_cast<double>(source() % 1000)});
  }
  for (const double weight : {0.0, 0.5, 0.97}) {
    const std::vector<CurvePoint> smooth = smoothed(points, weight);
    REQUIRE(smooth.size() == points.size());
    for (std::size_t i = 0; i < points.size(); ++i) {
      CHECK(smooth[i].step == points[i].step);
      if (std::isnan(points[i].value)) {
        CHECK(std::isnan(smooth[i].value));
      } else {
        CHECK(smooth[i].value ==
              Approx(weight == 0 ? points[i].value : plain_mean(points, i, weight)));
      }
    }
  }
}

TEST_CASE("the curves of a run are its steps and validations") {
  const TempFolder folder;
  write_made_run(folder.file("run.db"), {.validations = {{.step_id = 2, .loss = 2}}});
  const RunCurves curves = require_ok(read_curves(folder.file("run.db")));
  CHECK(curves.steps.size() == 5);
  CHECK(curves.steps.back().loss == Approx(2.6));
  REQUIRE(curves.validations.size() == 1);
  CHECK(curves.validations.front().step_id == 2);
  CHECK_FALSE(read_curves(folder.file("none.db")).ok());
}

}  // namespace sluice::runs
