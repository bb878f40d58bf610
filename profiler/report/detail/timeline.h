#pragma once
// A few steps with all of their operations, for the page's timeline.
//
// Thread contract: free functions.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/status.h"
#include "profiler/analyze/run_data.h"
#include "storage/rundb/reader.h"

namespace sluice::report::detail {

inline constexpr std::size_t kTimelineSpansMax = 20'000;  // of all steps together

// Those whose operations are in the record: a run with record_steps keeps only the last ones. All,
// where that leaves none.
Result<std::vector<rundb::StepRow>> steps_with_operations(rundb::Reader& reader,
                                                          const std::vector<rundb::StepRow>& steps);

struct ChosenStep {
  rundb::StepRow row;
  std::string why;  // "first, slowest"
};

// The first, the median, the slowest and the last; one that is several of these stands once. The
// first is the first that was not the run's very first, which takes memory, where there is one.
std::vector<ChosenStep> chosen_steps(const std::vector<rundb::StepRow>& steps);

// Names, groups of tracks, and of each step its spans as arrays; the page's script says in which
// order.
Result<nlohmann::ordered_json> timeline_json(rundb::Reader& reader, const analyze::RunInfo& info,
                                             const std::vector<ChosenStep>& chosen);

}  // namespace sluice::report::detail
