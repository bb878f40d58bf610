#pragma once
// Counters during one step, for the page's timeline.
//
// Thread contract: free functions.

#include <nlohmann/json.hpp>
#include <vector>

#include "base/status.h"
#include "profiler/analyze/run_data.h"
#include "storage/rundb/reader.h"

namespace sluice::report::detail {

// Name and samples as [ns since the step's begin, value] of each counter, in order of the tracks; a
// value that is none is null. The first sample of each may lie before the step.
Result<nlohmann::ordered_json> counters_json(rundb::Reader& reader, const analyze::RunInfo& info,
                                             const rundb::StepRow& step);

// About `count` of a counter's samples, in their order: the lowest and the highest of each stretch.
std::vector<rundb::CounterRow> thinned(const std::vector<rundb::CounterRow>& samples,
                                       std::size_t count);

}  // namespace sluice::report::detail
