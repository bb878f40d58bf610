#pragma once
// A step of one rank among many: which run it is one of, and what it took. Where a rank keeps its
// state decides which schedule the step has: in memory AMSP's (memory_rank.h), on drives that of a
// training run (drive_rank.h).
//
// Thread contract: plain data and free functions.

#include <array>
#include <cstdint>
#include <vector>

#include "base/parameter_span.h"
#include "core/model/activations.h"
#include "core/model/model_shape.h"
#include "core/platform/platform.h"
#include "core/shard/cost.h"
#include "core/shard/overlaps.h"
#include "core/stages/stage.h"

namespace sluice::simulate {

// Where a rank keeps the optimizer state that it owns.
enum class StateTier : std::uint8_t { memory, drives };

struct ShardedRun {
  model::ModelShape shape;
  platform::Platform platform;  // with a cluster
  shard::Triple triple;
  std::int64_t batch = 1;  // sequences of a rank's micro-batch
  std::int64_t sequence = 0;
  std::int64_t micro_batches = 1;
  ParameterKind precision = ParameterKind::bf16;
  model::LayerActivations activations = model::Activations::keep;
  StateTier state_tier = StateTier::memory;
  shard::Overlaps overlaps = shard::Overlaps::all();
  std::int64_t bucket_bytes = std::int64_t{512} << 20;  // StateTier::memory
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
  std::array<StageUse, stages::kStageCount> stages{};

  const StageUse& of(stages::Stage stage) const { return stages[stages::index_of(stage)]; }
  // In which a rank does nothing but wait for others.
  double exposed_seconds() const { return seconds - compute_seconds - update_seconds; }
};

// A step by formula, and what no step is shorter than.
struct FormulaTime {
  double compute_seconds = 0;
  double update_seconds = 0;
  shard::CommunicationTime communication;

  double total() const { return compute_seconds + update_seconds + communication.total(); }
};

// The memory and time of a run whose state lies on drives, before it is simulated.
struct DriveChoice {
  shard::RankMemory memory;
  FormulaTime formula;
  double bound_seconds = 0;  // no step of it takes less
};

// Whether any layer's activations leave memory, or its input does.
bool leaves_memory(const model::ModelShape& shape, const model::LayerActivations& activations);

// Errors (ErrorCode::config): the platform has no [cluster], the triple is not legal there, the
// model cannot take such sequences, a layer's activations leave memory though the state does not,
// state lies on drives and there are none.
Status check_sharded(const ShardedRun& run);

}  // namespace sluice::simulate
