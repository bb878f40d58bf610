#pragma once
// The verdict on a run for a terminal: shares as bars, findings, what to turn.
//
// Thread contract: free functions.

#include <optional>
#include <string>

#include "profiler/analyze/run_analysis.h"
#include "profiler/analyze/turn_next.h"

namespace sluice::cli {

// Lines of at most `columns`; ends with a line feed. Empty for a run without steps.
// `predicted`: none, where nobody asked. `info` says by which clock the run was measured: what is
// simulated or emulated is not called measured.
std::string verdict_text(const analyze::RunAnalysis& analysis,
                         const std::optional<analyze::PredictedChanges>& predicted,
                         const analyze::RunInfo& info, int columns);

// That this computer was too slow for the machine that it emulates; "" where it was not. It stands
// before whatever rests on the run's times.
std::string late_text(const analyze::Lateness& lateness, int columns);

// The settings to turn next, or why nothing is predicted.
std::string turn_next_text(const analyze::PredictedChanges& predicted, int columns);

}  // namespace sluice::cli
