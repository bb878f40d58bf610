#pragma once
// A sharded step in simulated time: RankStep as it is, on a RankMachine. A rank's state on drives
// is a bound of their links here; core/simulate/drive_rank.h has the schedule of such a rank.
//
// Thread contract: one call on one thread; deterministic.

#include <array>
#include <cstdint>

#include "core/model/activations.h"
#include "core/model/model_shape.h"
#include "core/runtime/stage.h"
#include "core/shard/rank_machine.h"

namespace sluice::shard {

struct ShardedRun {
  model::ModelShape shape;
  platform::Platform platform;  // with a cluster
  Triple triple;
  std::int64_t batch = 1;  // sequences of a rank's micro-batch
  std::int64_t sequence = 0;
  std::int64_t micro_batches = 1;
  model::LayerActivations activations = model::Activations::keep;  // kept, or computed anew
  StateTier state_tier = StateTier::memory;
  Overlaps overlaps = Overlaps::all();
  std::int64_t bucket_bytes = std::int64_t{512} << 20;
};

struct StageUse {
  std::int64_t count = 0;
  std::int64_t size_bytes = 0;  // that a rank sends to the next of its rings
  double seconds = 0;           // of all, though several may go on at once
};

struct ShardedStep {
  double seconds = 0;          // a step among like ones, from end to end
  double compute_seconds = 0;  // forward and backward
  double update_seconds = 0;   // and what a step costs besides
  // Forward and backward waited for activations on drives; mostly part of update_seconds.
  double activation_wait_seconds = 0;
  std::array<StageUse, runtime::kStageCount> stages{};

  const StageUse& of(runtime::Stage stage) const { return stages[runtime::index_of(stage)]; }
  // In which a rank does nothing but wait for others.
  double exposed_seconds() const { return seconds - compute_seconds - update_seconds; }
};

// One rank's, with what its layers keep of a micro-batch.
RankMemory run_memory(const ShardedRun& run);
// Modules are matrices; vectors go along with the first of their layer.
StepShape step_shape(const ShardedRun& run);
LayerTimes layer_times(const ShardedRun& run);

// Whether any layer's activations leave memory, or its input does.
bool leaves_memory(const model::ModelShape& shape, const model::LayerActivations& activations);

// What simulate_sharded() refuses before it begins.
Status check_sharded(const ShardedRun& run);

// Errors (ErrorCode::config): the platform has no [cluster], the triple is not legal there, the
// model cannot take such sequences, a layer's activations leave memory, state lies on drives and
// there are none.
Result<ShardedStep> simulate_sharded(const ShardedRun& run);
// The same of layers and a step given.
Result<ShardedStep> simulate_sharded(const platform::Platform& platform, const StepShape& step,
                                     const LayerTimes& times, const Triple& triple,
                                     const Overlaps& overlaps,
                                     StateTier state_tier = StateTier::memory);

}  // namespace sluice::shard
