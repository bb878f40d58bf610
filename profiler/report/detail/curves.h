#pragma once
// Curves over the steps of a run: few enough points for a page, and no peak is lost.
//
// Thread contract: free functions.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/status.h"
#include "profiler/analyze/run_data.h"
#include "storage/rundb/reader.h"

namespace sluice::report::detail {

// Indices of the steps that are drawn: all, up to four times `bucket_count`; else those with the
// shortest and the longest time, the lowest and the highest loss of each of that many buckets.
std::vector<std::size_t> drawn_steps(const std::vector<rundb::StepRow>& steps,
                                     std::size_t bucket_count);

// Time, loss and learning rate over the steps, which were skipped, and what was validated. At most
// two thousand validations are drawn, at even distances, and the last. Steps: drawn_steps().
inline constexpr std::size_t kCurveBuckets = 800;
nlohmann::ordered_json curves_json(const std::vector<rundb::StepRow>& steps,
                                   const std::vector<rundb::ValidationRow>& validations,
                                   std::size_t bucket_count = kCurveBuckets);

// The parts of steps: forward, backward and update, as means of neighbouring steps.
Result<nlohmann::ordered_json> phases_json(rundb::Reader& reader, const analyze::RunInfo& info,
                                           const std::vector<rundb::StepRow>& steps,
                                           const std::string& why_unknown);

}  // namespace sluice::report::detail
