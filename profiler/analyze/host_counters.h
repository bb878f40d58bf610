#pragma once
// The counters of the host in a stretch of time beside those in another one: what changed while
// nothing that was recorded was running.
//
// Thread contract: a free function that uses its reader, which reads all samples of the record.

#include <string>

#include "profiler/analyze/intervals.h"
#include "profiler/analyze/run_data.h"

namespace sluice::analyze {

// "resident memory (bytes) rose to 3.10 GB, usually at most 1.00 GB"; what differs by a fifth or
// more, at most three; "": none does, or there are none.
Result<std::string> host_counters_beside(rundb::Reader& reader, const RunInfo& info, Interval here,
                                         Interval usual);

}  // namespace sluice::analyze
