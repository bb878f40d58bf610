#pragma once
// What settings would do to a recorded run, finished or going on: simulated with and without them,
// on the platform fitted to its steps.
//
// Thread contract: free functions; a Predictor belongs to one thread.

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "cli/recorded_run.h"
#include "core/tune/platform_fit.h"
#include "core/tune/tuning.h"
#include "profiler/analyze/turn_next.h"

namespace sluice::cli {

// A run and its machine as fitted to it, on which settings are tried.
class Predictor {
 public:
  // Errors: those of open_recorded_run() and fit_platform(), such as too few steps.
  static Result<Predictor> open(const std::string& database);

  const std::string& run_name() const { return run_.name; }
  // Of a step, as the recording has them: the median, and what simulation makes of it.
  double recorded_seconds() const { return fit_.step.recorded * run_.time_scale; }
  double simulated_seconds() const { return simulated_seconds_ * run_.time_scale; }
  // How far the simulation without any change is from what was recorded; 0.03: 3 % longer.
  double fit_error() const { return fit_.step.error_after(); }

  // Errors (ErrorCode::config, memory) say what of the settings cannot be, or not on this machine.
  Result<analyze::PredictedChange> with(const std::vector<std::string>& settings) const;
  // Every setting by itself, and the best of several knobs together. What the machine cannot take
  // (a device more than it has, a buffer too many) is left out.
  analyze::PredictedChanges all() const;

 private:
  Predictor() = default;
  Result<double> seconds_with(const std::vector<std::string>& settings) const;
  analyze::PredictedChange change_of(const std::vector<std::string>& settings,
                                     double seconds) const;
  Result<analyze::PredictedChange> best_of(const tune::TuneKnob& knob, int& count) const;
  std::optional<analyze::PredictedChange> best_together(const plan::RunPlan& plan) const;
  bool needs_new_run(const std::string& key) const;

  std::string database_;
  RecordedRun run_;
  tune::PlatformFit fit_;
  double simulated_seconds_ = 0;  // of the modelled machine
};

// Whether these are settings that a prediction can be made of, whatever the run. The message
// names the nearest key.
Status check_predictable(const std::vector<std::string>& settings);

// Predictor::all() of a run, or why there is none.
analyze::PredictedChanges predict(const std::string& database);

}  // namespace sluice::cli
