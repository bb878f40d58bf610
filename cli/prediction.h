#pragma once
// What settings would do to a recorded run, finished or going on: simulated with and without them,
// on the platform fitted to its steps.
//
// Thread contract: free functions; a Predictor belongs to one thread.

#include <string>
#include <vector>

#include "base/status.h"
#include "cli/recorded_run.h"
#include "core/train/platform_fit.h"
#include "profiler/analyze/advice.h"

namespace sluice::cli {

struct Prediction {
  std::vector<std::string> settings;  // "buffers=4", together
  std::vector<std::string> from;      // "buffers=2": the same keys as they are now
  double seconds = 0;                 // a step; as the recording has it (times time_scale)
  double change = 0;                  // of a step's time; below 0: shorter
  std::string why;                    // of a suggestion; else empty
};

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
  Result<Prediction> with(const std::vector<std::string>& settings) const;

 private:
  Predictor() = default;
  Result<double> seconds_with(const std::vector<std::string>& settings) const;

  std::string database_;
  RecordedRun run_;
  train::PlatformFit fit_;
  double simulated_seconds_ = 0;  // of the modelled machine
};

// Whether these are settings that a prediction can be made of, whatever the run. The message
// names the nearest key.
Status check_predictable(const std::vector<std::string>& settings);

// Of the suggested settings, each by itself, those that make a step shorter by at least
// kWorthSaying, the best first. Those that the machine cannot take (a device more than it has, a
// buffer too many) are left out.
std::vector<Prediction> better_ones(const Predictor& predictor,
                                    const std::vector<analyze::Suggestion>& suggested);
inline constexpr double kWorthSaying = 0.02;

struct Predictions {
  std::vector<Prediction> better;
  double fit_error = 0;     // as Predictor::fit_error()
  std::string unavailable;  // why nothing was predicted; empty: it was
};
Predictions predict(const std::string& database, const std::vector<analyze::Suggestion>& suggested);

}  // namespace sluice::cli
