#pragma once
// Whether the operations of a run can be judged, or why not.
//
// Thread contract: free functions.

#include <string>

#include "profiler/analyze/run_analysis.h"

namespace sluice::analyze {

// Counts what of a step's record can be used.
void add_evidence(const StepData& step, Evidence& evidence);

// "" where operations say what the steps' time was spent on. `analysis` has its evidence, and the
// number of its steps.
std::string why_unknown(const RunAnalysis& analysis, const RunInfo& info);

}  // namespace sluice::analyze
