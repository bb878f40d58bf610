#include "core/plan/lr_schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace sluice::plan {

LrSchedule lr_schedule_of(const settings::RunConfig& config) {
  const settings::ScheduleConfig& schedule = config.schedule;
  return {config.update.lr, schedule.min_lr, schedule.warmup_steps,
          schedule.schedule_steps > 0 ? schedule.schedule_steps : schedule.steps};
}

FurtherSteps further_steps(const settings::RunConfig& config, std::int64_t last_step) {
  LrSchedule schedule = lr_schedule_of(config);
  FurtherSteps further{.steps = 2 * last_step};
  if (last_step < schedule.total_steps) {
    further.steps = std::min(further.steps, schedule.total_steps);
  } else if (schedule.floor > 0) {
    further.schedule_steps = schedule.total_steps;
  } else {
    schedule.total_steps = further.schedule_steps = further.steps;
    further.begins_anew = true;
  }
  further.next_lr = learning_rate(schedule, last_step);
  return further;
}

double learning_rate(const LrSchedule& schedule, std::int64_t step) {
  if (step < schedule.warmup_steps) {
    return schedule.peak * static_cast<double>(step + 1) /
           static_cast<double>(schedule.warmup_steps);
  }
  const std::int64_t decay_steps =
      std::max<std::int64_t>(1, schedule.total_steps - schedule.warmup_steps - 1);
  const double done = std::min(
      1.0, static_cast<double>(step - schedule.warmup_steps) / static_cast<double>(decay_steps));
  return schedule.floor +
         (schedule.peak - schedule.floor) * 0.5 * (1 + std::cos(std::numbers::pi * done));
}

}  // namespace sluice::plan
