#pragma once
// The ranks of a run beside one another, as JSON.
//
// Thread contract: free function.

#include "profiler/analyze/rank_analysis.h"
#include "profiler/answers/record_json.h"

namespace sluice::answers {

Json to_json(const analyze::RankAnalysis& analysis);

}  // namespace sluice::answers
