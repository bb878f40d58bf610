#pragma once
// Which sharding, which keeping of activations and which place of the state make a step shortest
// under a cap of memory a rank, with credit for what goes on beside computing: candidates are put
// in order by formula and simulated, the best first, until no other can be shorter.
//
// Thread contract: one call on one thread; deterministic unless it is stopped.

#include <functional>
#include <optional>
#include <vector>

#include "core/simulate/sharded_run.h"

namespace sluice::simulate {

class DriveRank;

struct SimulatedPlanRequest {
  ShardedRun run;  // its triple, activations and state_tier are chosen
  // That there are to choose from; at least one. What leaves memory goes with state on drives only.
  std::vector<model::LayerActivations> activations;
  std::vector<StateTier> state_tiers;  // the same; drives only where there are some
  const DriveRank* drives = nullptr;   // not null with StateTier::drives
  std::int64_t memory_cap_bytes = 0;   // of a rank; 0: no cap
  int simulations_max = 600;
  // The first candidate of so many shardings is simulated, also where it cannot be the shortest: to
  // say why it is not.
  int compared_triples = 5;
  std::function<void(int)> on_try = {};  // told how many were simulated; may be empty
  std::function<bool()> stops = {};      // asked before each but the first; may be empty
};

struct PlanCandidate {
  shard::Triple triple;
  model::LayerActivations activations;
  StateTier state_tier = StateTier::memory;
  shard::RankMemory memory;
  FormulaTime formula;
  double bound_seconds = 0;         // no step of it takes less
  std::optional<ShardedStep> step;  // where it was simulated
};

struct SimulatedPlan {
  PlanCandidate best;
  std::vector<PlanCandidate> others;  // that were simulated, the shortest first
  // The one of those that do not fit which is the shortest by formula. None: all fit.
  std::optional<PlanCandidate> too_large;
  // Why the first candidate with state on drives could not be, where none could.
  std::optional<Error> no_drives;
  int candidate_count = 0;
  int fitting_count = 0;
  int simulated_count = 0;
  double bound_seconds = 0;    // no candidate that fits takes less
  bool is_exhaustive = false;  // no candidate that fits is shorter than the best
};

// The step of the run, by the schedule of its state_tier. `drives`: not null with
// StateTier::drives.
Result<ShardedStep> step_of(const DriveRank* drives, const ShardedRun& run);

// Errors (ErrorCode::memory): none fits; it says the smallest cap with which one would. Those of
// memory_rank_step() and, where no candidate can be, of `drives`.
Result<SimulatedPlan> plan_by_simulation(const SimulatedPlanRequest& request);

// The run with a candidate's choices.
ShardedRun with_choices(const ShardedRun& run, const PlanCandidate& candidate);

}  // namespace sluice::simulate
