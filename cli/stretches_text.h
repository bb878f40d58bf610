#pragma once
// The stretches of a run between changes of its knobs, as a table on the terminal.
//
// Thread contract: free function.

#include <string>
#include <vector>

#include "profiler/analyze/lateness.h"
#include "profiler/analyze/stretches.h"

namespace sluice::cli {

// "" for a run that was never changed: it has nothing to set side by side.
std::string stretches_text(const std::vector<analyze::Stretch>& stretches,
                           const analyze::RunInfo& info, const analyze::Lateness& lateness,
                           int columns);

}  // namespace sluice::cli
