// How a step divides into phases, while it runs and when it is over.

#include "core/simulate/phases.h"

#include <catch2/catch.hpp>

#include "core/train/training_step.h"

namespace sluice::simulate {
namespace {

// A step of nbuffer: parameters up at 20, forward to 50, backward to 90, then its own update to
// 100.
train::StepOutcome outcome_until(TimeNs now_ns) {
  train::StepOutcome outcome;
  outcome.start_ns = 10;
  outcome.parameters_up_ns = 20;
  if (now_ns >= 50) outcome.forward_end_ns = 50;
  if (now_ns >= 90) outcome.backward_end_ns = 90;
  if (now_ns >= 100) outcome.end_ns = 100;
  return outcome;
}

Stretches stretches_at(TimeNs now_ns) {
  const train::StepOutcome outcome = outcome_until(now_ns);
  return {outcome, now_ns >= 20, now_ns >= 20 ? 20 : 3};
}

void check_parts(const ByPhase& parts, double forward, double backward, double update) {
  CHECK(parts[0] == Approx(forward));
  CHECK(parts[1] == Approx(backward));
  CHECK(parts[2] == Approx(update));
}

TEST_CASE("a step that is over divides into phases that add up to it") {
  const ByPhase seconds = phase_seconds(outcome_until(100));
  CHECK(seconds[0] == Approx(30e-9));
  CHECK(seconds[1] == Approx(40e-9));
  CHECK(seconds[2] == Approx(20e-9));  // the step before's, and its own
}

TEST_CASE("a running step is in the phase that began last") {
  CHECK(stretches_at(15).now() == Phase::update);
  CHECK(stretches_at(30).now() == Phase::forward);
  CHECK(stretches_at(60).now() == Phase::backward);
  CHECK(stretches_at(95).now() == Phase::update);
}

TEST_CASE("an interval lies in the phases that it crosses, by its parts") {
  check_parts(stretches_at(15).parts(12, 15), 0, 0, 1);
  check_parts(stretches_at(30).parts(15, 25), 0.5, 0, 0.5);
  check_parts(stretches_at(60).parts(40, 60), 0.5, 0.5, 0);
  check_parts(stretches_at(95).parts(10, 95), 30. / 85, 40. / 85, 15. / 85);
}

TEST_CASE("what lies before the step is in no phase") {
  check_parts(stretches_at(15).parts(0, 20), 0, 0, 0.5);
  check_parts(stretches_at(60).parts(0, 60), 0.5, 10. / 60, 10. / 60);
}

TEST_CASE("an instant is in the phase that runs") {
  check_parts(stretches_at(30).parts(30, 30), 1, 0, 0);
  check_parts(stretches_at(60).parts(60, 60), 0, 1, 0);
}

TEST_CASE("a step that waits for no parameters begins with forward") {
  train::StepOutcome outcome;
  outcome.start_ns = 10;
  const Stretches stretches(outcome, true, 4);
  CHECK(stretches.now() == Phase::forward);
  check_parts(stretches.parts(10, 20), 1, 0, 0);
}

}  // namespace
}  // namespace sluice::simulate
