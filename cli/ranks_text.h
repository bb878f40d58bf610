#pragma once
// The ranks of a run beside one another, for a terminal.
//
// Thread contract: free function.

#include <string>

#include "profiler/analyze/rank_analysis.h"

namespace sluice::cli {

// A line a rank, with what the columns mean; ends with a line feed. Empty where nothing is known.
std::string ranks_text(const analyze::RankAnalysis& analysis, int columns);

}  // namespace sluice::cli
