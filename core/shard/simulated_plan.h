#pragma once
// Which sharding, which keeping of activations and which place of the state make a step shortest
// under a cap of memory a rank, with credit for what goes on beside computing: candidates are put
// in order by formula and simulated, the best first, until no other can be shorter.
//
// Thread contract: one call on one thread; deterministic unless it is stopped.

#include <functional>
#include <optional>
#include <vector>

#include "core/shard/simulated_step.h"

namespace sluice::shard {

// A step has at least: its computing and update; and the collectives of each kind of group, which
// are done one after the other.
struct FormulaTime {
  double compute_seconds = 0;
  double update_seconds = 0;
  CommunicationTime communication;

  double total() const { return compute_seconds + update_seconds + communication.total(); }
  double bound() const;
};

// What a candidate whose state lies on drives takes, before it is simulated.
struct DriveChoice {
  RankMemory memory;
  FormulaTime formula;
  double bound_seconds = 0;  // no step of it takes less
};

// Steps of ranks whose state lies on their drives, as the schedule of such a rank has them
// (core/simulate/drive_rank.h).
class DriveSteps {
 public:
  virtual ~DriveSteps() = default;
  // ErrorCode::memory and config: there can be no such step, and the candidate is passed over.
  virtual Result<DriveChoice> choice(const ShardedRun& run) const = 0;
  virtual Result<ShardedStep> step(const ShardedRun& run) const = 0;
};

struct SimulatedPlanRequest {
  ShardedRun run;  // its triple, activations and state_tier are chosen
  // That there are to choose from; at least one. What leaves memory goes with state on drives only,
  // and with `drives`.
  std::vector<model::LayerActivations> activations;
  std::vector<StateTier> state_tiers;  // the same; drives only where there are some
  // Null: a rank's drives are as long as their fullest link, beside the update.
  const DriveSteps* drives = nullptr;
  std::int64_t memory_cap_bytes = 0;  // of a rank; 0: no cap
  int simulations_max = 600;
  // The first candidate of so many shardings is simulated, also where it cannot be the shortest: to
  // say why it is not.
  int compared_triples = 5;
  std::function<void(int)> on_try = {};  // told how many were simulated; may be empty
  std::function<bool()> stops = {};      // asked before each but the first; may be empty
};

struct PlanCandidate {
  Triple triple;
  model::LayerActivations activations;
  StateTier state_tier = StateTier::memory;
  RankMemory memory;
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

// The step of the run, by `drives` where its state lies there; null: simulate_sharded().
Result<ShardedStep> simulate_by(const DriveSteps* drives, const ShardedRun& run);

// Errors (ErrorCode::memory): none fits; it says the smallest cap with which one would. Those of
// simulate_sharded() and, where no candidate can be, of `drives`.
Result<SimulatedPlan> plan_by_simulation(const SimulatedPlanRequest& request);

// The run with a candidate's choices.
ShardedRun with_choices(const ShardedRun& run, const PlanCandidate& candidate);

}  // namespace sluice::shard
