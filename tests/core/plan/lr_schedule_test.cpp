// What a run that has come to its end may go on with, by its schedule.

#include "core/plan/lr_schedule.h"

#include <catch2/catch.hpp>

namespace sluice::plan {
namespace {

settings::RunConfig config_with(std::int64_t steps, std::int64_t schedule_steps, double min_lr) {
  settings::RunConfig config;
  config.update.lr = 2e-3;
  config.schedule.steps = steps;
  config.schedule.warmup_steps = 2;
  config.schedule.schedule_steps = schedule_steps;
  config.schedule.min_lr = min_lr;
  return config;
}

}  // namespace

TEST_CASE("a schedule of 0 steps is as long as the run") {
  CHECK(lr_schedule_of(config_with(10, 0, 0)).total_steps == 10);
  CHECK(lr_schedule_of(config_with(10, 40, 0)).total_steps == 40);
  CHECK(learning_rate(lr_schedule_of(config_with(10, 0, 0)), 9) == 0);
}

TEST_CASE("within its schedule a run goes on as it was begun, no further than to its end") {
  const settings::RunConfig config = config_with(10, 40, 0);
  const FurtherSteps further = further_steps(config, 10);
  CHECK(further.steps == 20);
  CHECK(further.schedule_steps == 0);
  CHECK_FALSE(further.begins_anew);
  CHECK(further.next_lr == learning_rate(lr_schedule_of(config), 10));
  CHECK(further_steps(config_with(30, 40, 0), 30).steps == 40);
}

TEST_CASE("behind its schedule a rate that still learns is kept, whatever the run's length") {
  const FurtherSteps further = further_steps(config_with(10, 0, 1e-4), 10);
  CHECK(further.steps == 20);
  CHECK(further.schedule_steps == 10);
  CHECK_FALSE(further.begins_anew);
  CHECK(further.next_lr == 1e-4);
  settings::RunConfig then = config_with(20, further.schedule_steps, 1e-4);
  for (std::int64_t step = 10; step < 20; ++step) {
    CHECK(learning_rate(lr_schedule_of(then), step) == 1e-4);
  }
}

TEST_CASE("behind a schedule that ended at 0 a longer one is asked for by name") {
  for (const std::int64_t schedule_steps : {0, 10}) {
    const FurtherSteps further = further_steps(config_with(10, schedule_steps, 0), 10);
    CHECK(further.steps == 20);
    CHECK(further.schedule_steps == 20);
    CHECK(further.begins_anew);
    CHECK(further.next_lr == learning_rate({2e-3, 0, 2, 20}, 10));
    CHECK(further.next_lr > 1e-3 / 2);
  }
}

}  // namespace sluice::plan
