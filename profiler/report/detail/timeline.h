#pragma once
// A few steps with all of their operations, for the page's timeline.
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

inline constexpr std::size_t kTimelineSpansMax = 20'000;  // of all steps together

struct ChosenStep {
  rundb::StepRow row;
  std::string why;  // "first, slowest"
};

// The first, the median, the slowest and the last; one that is several of these stands once. The
// run's very first step takes memory, so the first is the one behind it, where there is one.
std::vector<ChosenStep> chosen_steps(const std::vector<rundb::StepRow>& steps);

enum class Counters : std::uint8_t { shown, left_out };

// Names, groups of tracks, and each step's spans as arrays, in the order that the page's script has
// (html/timeline_layout.js). `why_unknown`: a sentence, where operations cannot be judged; then
// steps whose operations cannot be read are left out.
Result<nlohmann::ordered_json> timeline_json(rundb::Reader& reader, const analyze::RunInfo& info,
                                             const std::vector<ChosenStep>& chosen,
                                             const std::string& why_unknown,
                                             Counters counters = Counters::shown);

}  // namespace sluice::report::detail
