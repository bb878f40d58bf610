#pragma once
// A step of ranks that have their state in memory, in simulated time: AMSP's schedule (RankStep) on
// the links of a cluster (RankMachine). Sluice trains no such ranks; docs/sharding.md says why this
// schedule is not that of a training run.
//
// Thread contract: one call on one thread; deterministic.

#include "core/simulate/rank_machine.h"
#include "core/simulate/sharded_run.h"

namespace sluice::simulate {

// One rank's, with what its layers keep of a micro-batch.
shard::RankMemory run_memory(const ShardedRun& run);
// Modules are matrices; vectors go along with the first of their layer.
shard::StepShape step_shape(const ShardedRun& run);
std::vector<plan::LayerCost> layer_costs(const ShardedRun& run);

// Errors: those of check_sharded().
Result<ShardedStep> memory_rank_step(const ShardedRun& run);
// The same of layers and a step given.
Result<ShardedStep> memory_rank_step(const platform::Platform& platform,
                                     const shard::StepShape& step,
                                     std::span<const plan::LayerCost> costs,
                                     const shard::Triple& triple, const shard::Overlaps& overlaps);

}  // namespace sluice::simulate
