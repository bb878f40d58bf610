#pragma once
// Steps over many ranks whose state lies on each rank's drives: the step of a run that trains
// (train::training_step with train::ShardTraffic, core/offload, core/activation) in simulated time,
// with this rank's share of the state on its drives.
//
// Thread contract: one call at a time on one thread; deterministic.

#include "core/settings/run_config.h"
#include "core/simulate/sharded_run.h"

namespace sluice::plan {
struct RunPlan;
}

namespace sluice::plan {
struct RunPlan;
}

namespace sluice::simulate {

class DriveRank {
 public:
  // `config`: all that a ShardedRun does not say: method, devices, pipeline, density, ...
  explicit DriveRank(settings::RunConfig config) : config_(std::move(config)) {}

  // The run of which the step is one. Errors: those of plan::plan_run().
  Result<plan::RunPlan> plan(const ShardedRun& run) const;
  // ErrorCode::memory and config: there can be no such step.
  Result<DriveChoice> choice(const ShardedRun& run) const;
  Result<ShardedStep> step(const ShardedRun& run) const;

 private:
  settings::RunConfig config_;
};

}  // namespace sluice::simulate
