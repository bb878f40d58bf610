#pragma once
// What the analysis of a run says, for the page.
//
// Thread contract: free functions.

#include <nlohmann/json.hpp>

#include "profiler/analyze/run_analysis.h"
#include "profiler/analyze/stretches.h"
#include "profiler/analyze/turn_next.h"

namespace sluice::report::detail {

// Each but next_json() and stretches_json() says `why_empty` where there is nothing.
nlohmann::ordered_json verdict_json(const analyze::RunAnalysis& analysis);
// [{of, outcome, why}, ...], for programs; and the lines that the page shows of them.
nlohmann::ordered_json answers_json(const std::vector<analyze::Answer>& answers);
nlohmann::ordered_json looked_json(const std::vector<analyze::Answer>& answers);
nlohmann::ordered_json next_json(const analyze::PredictedChanges& predicted);
nlohmann::ordered_json stretches_json(const std::vector<analyze::Stretch>& stretches,
                                      const analyze::RunInfo& info);
nlohmann::ordered_json links_json(const analyze::RunAnalysis& analysis);
nlohmann::ordered_json devices_json(const analyze::RunAnalysis& analysis,
                                    const analyze::RunInfo& info);

}  // namespace sluice::report::detail
