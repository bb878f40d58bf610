#pragma once
// The effect of settings on a recorded run, finished or live: simulated with and without them, on
// the platform fitted to its steps.
//
// Thread contract: plain data and free functions; a Predictor belongs to one thread.

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "core/tune/fitted_run.h"
#include "core/tune/tuning.h"

namespace sluice::tune {

// A step as it should be with other settings.
struct Prediction {
  std::vector<std::string> settings;  // "buffers=4", together
  std::vector<std::string> from;      // "buffers=2": the same keys as they are now
  double seconds = 0;                 // a step, by the recording's clock
  double change = 0;                  // of a step's time; below 0: shorter
  bool needs_new_run = false;         // a setting is no knob, and fixed while the run is live
  bool rests_on_file = false;         // on rates of the platform file: the run did not show them
};

struct Predictions {
  std::vector<Prediction> each;  // the best value of each setting, by itself; shortest step first
  std::optional<Prediction> together;  // the best that was found for several knobs at once
  int simulated_count = 0;             // single changes that this machine can take
};

// A run and its machine as fitted to it, on which settings are tried.
class Predictor {
 public:
  // `stops` is kept. Errors: those of open_recorded_run() and fit_platform(), such as too few
  // steps; once it stops, ErrorCode::cancelled of this and of all predictions.
  static Result<Predictor> open(const std::string& database, Stops stops = {});

  // Seconds of a step, by the recording's clock: the recorded median, and what simulation makes of
  // it.
  double recorded_seconds() const { return fitted_.fit.step.recorded * fitted_.run.time_scale; }
  double simulated_seconds() const { return simulated_seconds_ * fitted_.run.time_scale; }
  // How far the simulation without any change is from what was recorded; 0.03: 3 % longer.
  double fit_error() const { return fitted_.fit.step.error_after(); }
  // A line each: what the fit rests on besides the machine.
  const std::vector<std::string>& caveats() const { return fitted_.run.caveats; }
  // The value that a setting, or only its key, has in the run.
  std::string value_now(const std::string& setting) const;

  // Errors (ErrorCode::config, memory) say what of the settings cannot be, or not on this machine.
  Result<Prediction> with(const std::vector<std::string>& settings) const;
  // Every setting by itself, and the best of several knobs together. What the machine cannot take
  // (a device more than it has, a buffer too many) is left out. Errors: those of plan_run().
  Result<Predictions> all() const;

 private:
  Predictor() = default;
  Result<double> seconds_with(const std::vector<std::string>& settings) const;
  Prediction prediction_of(const std::vector<std::string>& settings, double seconds) const;
  std::optional<Prediction> best_of(const TuneKnob& knob, int& count) const;
  std::optional<Prediction> best_together(const plan::RunPlan& plan) const;
  bool needs_new_run(const std::string& key) const;

  FittedRun fitted_;
  Stops stops_;
  double simulated_seconds_ = 0;  // of the modelled machine
};

// Whether these are settings that a prediction can be made of, whatever the run. The message
// names the nearest key.
Status check_predictable(const std::vector<std::string>& settings);

}  // namespace sluice::tune
