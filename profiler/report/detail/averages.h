#pragma once
// What holds for a steady step of a run: verdict, links and devices, as means over a few steps.
//
// Thread contract: free functions.

#include <nlohmann/json.hpp>
#include <vector>

#include "base/status.h"
#include "profiler/analyze/run_data.h"
#include "profiler/report/detail/curves.h"
#include "storage/rundb/reader.h"

namespace sluice::report::detail {

inline constexpr std::size_t kSteadyStepsMax = 20;

// Up to kSteadyStepsMax, evenly chosen of the last hundred: not skipped, after the last change of a
// knob, and not the first two after the run began or changed. Where that leaves none, what there
// is.
std::vector<rundb::StepRow> steady_steps(const std::vector<rundb::StepRow>& steps,
                                         const std::vector<Change>& changes);

// {"verdict": ..., "links": ..., "devices": ...}; each says `why_empty` where there is nothing.
Result<nlohmann::ordered_json> averages_json(rundb::Reader& reader, const analyze::RunInfo& info,
                                             const std::vector<rundb::StepRow>& steady);

}  // namespace sluice::report::detail
