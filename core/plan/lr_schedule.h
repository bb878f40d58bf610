#pragma once
// Learning rate of a step: linear warm-up, then half a cosine down to the floor.
//
// Thread contract: free function.

#include <cstdint>

#include "core/settings/run_config.h"

namespace sluice::plan {

struct LrSchedule {
  double peak = 1e-3;
  double floor = 0;
  std::int64_t warmup_steps = 0;
  std::int64_t total_steps = 1;
};

// That of a run's settings: with schedule_steps=0 it ends with the run.
LrSchedule lr_schedule_of(const settings::RunConfig& config);

// `step` counts from 0. The last step of the schedule and all after it have the floor's rate.
double learning_rate(const LrSchedule& schedule, std::int64_t step);

}  // namespace sluice::plan
