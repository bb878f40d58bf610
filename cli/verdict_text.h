#pragma once
// The verdict on a run for a terminal: shares as bars, findings, what to turn.
//
// Thread contract: free functions.

#include <string>

#include "cli/prediction.h"
#include "profiler/analyze/run_analysis.h"

namespace sluice::cli {

// Columns of the terminal on stdout; 80 where it is none.
int terminal_columns();

// Lines of at most `columns`, at least 40; ends with a line feed. Empty for a run without steps.
// `clock` is the run's (meta key `clock`): what is simulated or emulated is not called measured.
std::string verdict_text(const analyze::RunAnalysis& analysis, const Predictions& predictions,
                         const std::string& clock, int columns);

}  // namespace sluice::cli
