#pragma once
// The verdict on a run for a terminal: shares as bars, findings, what to turn.
//
// Thread contract: free functions.

#include <optional>
#include <span>
#include <string>

#include "profiler/analyze/doubts.h"
#include "profiler/analyze/run_analysis.h"
#include "profiler/analyze/turn_next.h"

namespace sluice::cli {

// Lines of at most `columns`; ends with a line feed. Empty for a run without steps.
// `predicted`: none, where nobody asked. `info` says by which clock the run was measured: what is
// simulated or emulated is not called measured.
std::string verdict_text(const analyze::RunAnalysis& analysis,
                         const std::optional<analyze::PredictedChanges>& predicted,
                         const analyze::RunInfo& info, int columns);

// Reasons to doubt the run's figures, a sentence each; "" where there are none. They stand before
// whatever rests on those figures.
std::string doubts_text(std::span<const analyze::Doubt> doubts, int columns);

// The settings to turn next, or why nothing is predicted.
std::string turn_next_text(const analyze::PredictedChanges& predicted, int columns);

}  // namespace sluice::cli
