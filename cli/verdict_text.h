#pragma once
// The verdict on a run for a terminal: shares as bars, findings, what to turn.
//
// Thread contract: free functions.

#include <string>

#include "cli/prediction.h"
#include "profiler/analyze/run_analysis.h"

namespace sluice::cli {

// Lines of at most `columns`; ends with a line feed. Empty for a run without steps.
// `clock` is the run's (meta key `clock`): what is simulated or emulated is not called measured.
std::string verdict_text(const analyze::RunAnalysis& analysis, const Predictions& predictions,
                         const std::string& clock, int columns);

}  // namespace sluice::cli
