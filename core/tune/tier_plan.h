#pragma once
// Where everything lives in a step, and how it moves: found by simulating steps (D18).
//
// The layers' choices (layer_choices.h) and the other settings (plan_knobs.h, by tuning.h's search)
// are searched in turn until neither makes a step shorter. Each candidate is the schedule of a run
// in simulated time; what does not fit a cap (tier_memory.h) is never simulated. A lower bound
// (lower_bound.h) says how far the plan is from what no choice of layers could beat.
//
// Thread contract: one call on one thread; deterministic unless it is stopped.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/plan/run_plan.h"
#include "core/simulate/simulated_step.h"
#include "core/tune/layer_choices.h"
#include "core/tune/lower_bound.h"
#include "core/tune/tier_memory.h"

namespace sluice::tune {

struct PlanRequest {
  // The run with these settings ("key=value") over those it begins with.
  std::function<Result<plan::RunPlan>(const std::vector<std::string>&)> plan_of;
  MemoryModel memory;
  std::vector<std::string> held = {};  // keys that stay as they are; "activations" is one, too
  std::int64_t commit_every_max = 1;   // above 1, commit_every may rise to it
  int simulations_max = 600;
  std::function<void(int)> on_try = {};  // told how many were simulated; may be empty
  std::function<bool()> stops = {};      // asked before each: the best so far is the plan
};

struct PlannedSetting {
  std::string key;
  std::string value;
  std::string from;
  std::string what;  // it decides
  // By which a step is longer with `from` and all others as planned; infinite: it would not fit.
  // None: it was not simulated, since the search was stopped.
  std::optional<double> worth_seconds = 0.0;

  bool is_changed() const { return value != from; }
};

// A published way to choose the layers, with all other settings as planned.
struct SpecialCase {
  std::string name;
  std::string activations;
  double seconds = 0;  // infinite: the step cannot be simulated
  bool fits = false;
};

struct TierPlan {
  plan::RunPlan run;
  simulate::SimulatedStep step;
  TierMemory memory;
  std::vector<PlannedSetting> settings;  // "activations" first
  double start_seconds = 0;              // infinite: the settings it began with do not fit
  LowerBound bound;
  // Activations that leave: in memory at once, and in a step.
  std::int64_t resident_bytes = 0;
  std::int64_t moved_bytes = 0;
  double stall_seconds = 0;  // by which forward and backward are longer than if nothing had to move
  std::vector<SpecialCase> special_cases;  // none where the search was stopped
  int simulated_count = 0;
  // No other choice of layers gains kWorthwhile of a step with these settings.
  bool is_exhaustive = false;
  bool was_stopped = false;
};

// Errors (ErrorCode::memory): no plan fits; the message has the smallest cap of each memory that
// would do. Those of `plan_of`, and of simulate_step() where no setting can be simulated.
Result<TierPlan> plan_tiers(const PlanRequest& request);

// ErrorCode::config if a held key is not planned; the message begins with `option`.
Status check_held_plan(const std::vector<std::string>& held, const std::string& option);

}  // namespace sluice::tune
