#include "core/optimizer/loss_scale.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <vector>

namespace sluice::optimizer {
namespace {

// Worked out by hand for growth_interval = 3.
TEST_CASE("the loss scale grows after enough good steps and backs off on overflow") {
  const LossScaleOptions options{.growth_interval = 3};
  struct Row {
    bool overflow;
    double scale;
    std::int64_t good_steps;
  };
  const std::vector<Row> table = {
      {false, 65536, 1},  {false, 65536, 2}, {false, 131072, 0},  // third good step in a row: grows
      {false, 131072, 1}, {true, 65536, 0},                       // overflow: half, count from zero
      {false, 65536, 1},  {false, 65536, 2}, {true, 32768, 0},    // two are not three
      {true, 16384, 0},   {false, 16384, 1}, {false, 16384, 2},  {false, 32768, 0},
  };
  LossScale current{.scale = options.initial, .good_steps = 0};
  for (std::size_t step = 0; step < table.size(); ++step) {
    current = next_loss_scale(current, table[step].overflow, options);
    CAPTURE(step);
    CHECK(current.scale == table[step].scale);
    CHECK(current.good_steps == table[step].good_steps);
  }
}

TEST_CASE("the defaults are GradScaler's: 2000 good steps double the scale") {
  LossScale current{.scale = LossScaleOptions{}.initial, .good_steps = 0};
  for (int step = 0; step < 1999; ++step) current = next_loss_scale(current, false, {});
  CHECK(current.scale == 65536);
  CHECK(current.good_steps == 1999);
  current = next_loss_scale(current, false, {});
  CHECK(current.scale == 131072);
  CHECK(current.good_steps == 0);
}

TEST_CASE("a scale that would overflow fp32 stays, and counts again") {
  const LossScaleOptions options{.growth_interval = 1};
  const LossScale largest{.scale = std::ldexp(1.0, 127), .good_steps = 0};
  const LossScale next = next_loss_scale(largest, false, options);
  CHECK(next.scale == largest.scale);
  CHECK(next.good_steps == 0);
}

TEST_CASE("the scale falls to its smallest and no further, and counts again from there") {
  const LossScaleOptions options{.growth_interval = 2, .smallest = 4};
  LossScale current{.scale = 16, .good_steps = 0};
  const std::vector<double> expected = {8, 4, 4, 4};
  for (const double scale : expected) {
    CHECK_FALSE((is_smallest(current.scale, options) && scale < current.scale));
    current = next_loss_scale(current, true, options);
    CHECK(current.scale == scale);
    CHECK(is_smallest(current.scale, options) == (scale == 4));
  }
  current = next_loss_scale(next_loss_scale(current, false, options), false, options);
  CHECK(current.scale == 8);
}

TEST_CASE("a scale that a state has from below the smallest is not raised by an overflow") {
  const LossScale next = next_loss_scale({.scale = 0.25, .good_steps = 0}, true, {});
  CHECK(next.scale == 0.25);
  CHECK(is_smallest(next.scale, {}));
}

TEST_CASE("the scale is an fp32 value whatever the factors") {
  const LossScale next =
      next_loss_scale({.scale = 3, .good_steps = 0}, true, {.backoff_factor = 0.7});
  CHECK(next.scale == static_cast<double>(2.1f));
}

TEST_CASE("grad_scale undoes the loss scale and clips to the largest norm") {
  CHECK(grad_scale(1, 5, 0) == 1);
  CHECK(grad_scale(1024, 5, 0) == 1.0 / 1024);
  CHECK(grad_scale(1, 0.5, 1) == 1);
  CHECK(grad_scale(1, 4, 1) == Approx(0.25).epsilon(1e-6));
  CHECK(grad_scale(1, 4, 1) < 0.25);  // torch adds 1e-6 to the norm
  CHECK(grad_scale(1024, 4, 1) == Approx(0.25 / 1024).epsilon(1e-6));
  CHECK(grad_scale(1, 1, 1) < 1);
  CHECK(grad_scale(1, 0, 1) == 1);
}

TEST_CASE("grad_scale of a norm that is not finite is zero or NaN, never a usable number") {
  CHECK(grad_scale(1, std::numeric_limits<double>::infinity(), 1) == 0);
  CHECK(std::isnan(grad_scale(1, std::numeric_limits<double>::quiet_NaN(), 1)));
}

}  // namespace
}  // namespace sluice::optimizer
