#pragma once
// What a suggested setting should gain: simulated with and without it, on the platform fitted to
// the recorded run.
//
// Thread contract: free functions.

#include <string>
#include <vector>

#include "base/status.h"
#include "profiler/analyze/advice.h"

namespace sluice::cli {

struct Prediction {
  analyze::Suggestion suggestion;
  std::string from;    // the setting's value now
  double seconds = 0;  // a step, simulated with it; as the recording has it (times time_scale)
  double change = 0;   // of a step's time; below 0: shorter
};
struct Predictions {
  // Those that make a step shorter by at least kWorthSaying, the best first.
  std::vector<Prediction> better;
  // How far the simulation without any change is from what was recorded; 0.03: 3 % longer.
  double fit_error = 0;
  std::string unavailable;  // why nothing was predicted; empty: it was
};
inline constexpr double kWorthSaying = 0.02;

// Suggestions that the machine cannot take (a device more than it has, a buffer too many) are left
// out.
Predictions predict(const std::string& database, const std::vector<analyze::Suggestion>& suggested);

}  // namespace sluice::cli
