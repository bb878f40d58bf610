#pragma once
// The settings that make a step shortest, of a model on a machine or of a recorded run on the
// machine as fitted to it; and which number of devices is the best buy.
//
// Thread contract: plain data and free functions; a MachineTuning belongs to one thread.

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/status.h"
#include "base/stops.h"
#include "core/plan/run_plan.h"
#include "core/simulate/simulated_step.h"
#include "core/tune/tier_memory.h"
#include "core/tune/tuning.h"

namespace sluice::tune {

struct FittedRun;

// Paths of a model file and a platform file.
struct ModelOnPlatform {
  std::string model;
  std::string platform;
};

// Where the search begins, and what it may turn.
struct TuneChoice {
  std::vector<std::string> overrides = {};  // "key=value", over the settings of the start
  std::vector<std::string> held = {};       // keys of knobs that stay as they are
  double density_min = 1;                   // below 1, density is a knob down to it
  // The only keys that may change, such as the knobs of a live run; none: all of them.
  std::optional<std::vector<std::string>> changeable = {};

  // Layers' activations may be chosen, too (tier_plan.h), under the caps of these memories.
  std::optional<MemoryModel> layers_under = {};

  // Told before each simulation: the share of the machines that are tuned (0 where there is one),
  // and how many settings were simulated for this one. May be empty.
  std::function<void(double, int)> on_try = {};
  Stops stops = {};  // then the tuning ends with ErrorCode::cancelled

  bool is_held(const std::string& key) const;
};

// ErrorCode::config if a held key is no knob; the message begins with `option`.
Status check_held(const TuneChoice& choice, const std::string& option);

// A machine, tuned.
struct TunedMachine {
  std::vector<TuneKnob> knobs;
  plan::RunPlan best;
  simulate::SimulatedStep before;
  simulate::SimulatedStep after;
  // A step with state_format=compact beside the rest: said, and never chosen, since numbers change.
  // None where it is compact already, or cannot be.
  std::optional<double> compact_seconds;
  TuneResult result;

  std::size_t combination_count() const;  // of the knobs' values
  bool changes(const std::string& key) const;
};

class MachineTuning {
 public:
  MachineTuning(ModelOnPlatform start, TuneChoice choice);
  MachineTuning(FittedRun start, TuneChoice choice);

  // Null where no run was recorded.
  const FittedRun* fitted_run() const;
  // The simulated times of a recorded run times this are by the recording's clock.
  double time_scale() const;

  // Errors: those of the start as it is, before any knob is turned. Settings that the machine
  // cannot take are passed over.
  Result<TunedMachine> tuned() const;
  // The same with each of these values of `devices`.
  Result<std::vector<TunedMachine>> tuned_for_devices(std::span<const std::string> counts) const;

 private:
  Result<TunedMachine> tuned_from(const std::vector<std::string>& overrides, double share) const;
  Result<TunedMachine> knobs_tuned(const std::vector<std::string>& overrides, double share) const;
  Result<TunedMachine> layers_tuned(TunedMachine tuned, std::vector<std::string> overrides,
                                    double share) const;
  std::optional<double> compact_seconds(const std::vector<std::string>& overrides,
                                        const TunedMachine& tuned) const;
  Status check_memory(plan::RunPlan& run) const;
  std::vector<TuneKnob> knobs_of(const plan::RunPlan& start) const;
  Result<plan::RunPlan> plan_of(std::vector<std::string> overrides,
                                const TuneSettings& settings) const;

  std::variant<ModelOnPlatform, std::shared_ptr<const FittedRun>> start_;
  TuneChoice choice_;
};

// Where a step costs least: price times time, since a machine lasts a fixed number of hours. The
// first where the platform states no prices. `machines` is not empty.
const TunedMachine& best_buy(std::span<const TunedMachine> machines);

}  // namespace sluice::tune
