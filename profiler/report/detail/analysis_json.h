#pragma once
// The analysis of a run as the page words and draws it, beside what profiler/answers says of it to
// everybody.
//
// Thread contract: free functions.

#include <nlohmann/json.hpp>

#include "profiler/analyze/run_analysis.h"
#include "profiler/analyze/turn_next.h"

namespace sluice::report::detail {

// Each but next_json() says `why_empty` where there is nothing.
nlohmann::ordered_json verdict_json(const analyze::RunAnalysis& analysis);
// The lines that the page shows of answers.
nlohmann::ordered_json looked_json(const std::vector<analyze::Answer>& answers);
nlohmann::ordered_json next_json(const analyze::PredictedChanges& predicted);
nlohmann::ordered_json links_json(const analyze::RunAnalysis& analysis);
nlohmann::ordered_json devices_json(const analyze::RunAnalysis& analysis,
                                    const analyze::RunInfo& info);

}  // namespace sluice::report::detail
