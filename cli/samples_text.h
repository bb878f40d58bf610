#pragma once
// What the processor samples say of a stretch of a run, as lines for a terminal.
//
// Thread contract: free function.

#include <string>

#include "profiler/analyze/sampled_time.h"

namespace sluice::cli {

std::string samples_text(const analyze::SampledTime& time, int columns);

}  // namespace sluice::cli
