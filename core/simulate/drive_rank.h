#pragma once
// Steps over many ranks whose state lies on each rank's drives: the step of a run that trains
// (train::training_step with train::ShardTraffic, core/offload, core/activation) in simulated time,
// with this rank's share of the state on its drives. In place of core/shard's step of ranks that
// have their state in memory.
//
// Thread contract: one call at a time on one thread; deterministic.

#include "core/settings/run_config.h"
#include "core/shard/simulated_plan.h"

namespace sluice::plan {
struct RunPlan;
}

namespace sluice::simulate {

class DriveRank final : public shard::DriveSteps {
 public:
  // `config`: all that a ShardedRun does not say: method, devices, pipeline, density, ...
  explicit DriveRank(settings::RunConfig config) : config_(std::move(config)) {}

  // The run of which the step is one. Errors: those of plan::plan_run().
  Result<plan::RunPlan> plan(const shard::ShardedRun& run) const;
  Result<shard::DriveChoice> choice(const shard::ShardedRun& run) const override;
  Result<shard::ShardedStep> step(const shard::ShardedRun& run) const override;

 private:
  settings::RunConfig config_;
};

}  // namespace sluice::simulate
