#pragma once
// Reasons to doubt a run's figures, each as a short mark that stands beside figures and as the
// sentence behind it. Whoever shows figures of a run shows these, so that no view of them looks
// better than the record is.
//
// Thread contract: plain data and free functions.

#include <span>
#include <string>
#include <vector>

#include "profiler/analyze/run_analysis.h"

namespace sluice::analyze {

struct Doubt {
  std::string label;  // "LATE": what `sluice show` writes before the sentence
  std::string mark;   // "70 % of operations LATE"
  std::string sentence;
};

inline constexpr const char* kLostLabel = "LOST";
// From this share of a step on, clocks of ranks are not known well enough to say who waits for
// whom.
inline constexpr double kClockShare = 0.01;

// Records that were lost, operations that were late, clocks of ranks that are hardly known.
// Predictions are no figures of the run: turn_next.h leaves out those within their error.
std::vector<Doubt> doubts_of(const RunAnalysis& analysis);

// The marks in one line; "": nothing is in doubt.
std::string doubt_marks(std::span<const Doubt> doubts);

}  // namespace sluice::analyze
