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

// The further steps that a run may take after its last one, and their effect on the rate.
struct FurtherSteps {
  std::int64_t steps = 0;           // of the whole run then
  std::int64_t schedule_steps = 0;  // that it sets; 0: the schedule goes on as it was begun
  double next_lr = 0;               // of its first step
  bool begins_anew = false;         // the rate, which had fallen to its end, rises to next_lr
};
// As many steps again, no further than to where the schedule ends. Where it has ended, at a rate
// that still changes weights, that rate is kept; at a rate of 0 the schedule is made longer.
FurtherSteps further_steps(const settings::RunConfig& config, std::int64_t last_step);

}  // namespace sluice::plan
