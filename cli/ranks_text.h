#pragma once
// The ranks of a run beside one another, for a terminal and as JSON.
//
// Thread contract: free functions.

#include <nlohmann/json.hpp>
#include <string>

#include "profiler/analyze/rank_analysis.h"

namespace sluice::cli {

// A line a rank, with what the columns mean; ends with a line feed. Empty where nothing is known.
std::string ranks_text(const analyze::RankAnalysis& analysis, int columns);

nlohmann::ordered_json ranks_json(const analyze::RankAnalysis& analysis);

}  // namespace sluice::cli
