#pragma once
// Many runs as one HTML file that needs nothing beside it: a table that is sorted and filtered, and
// curves of up to eight runs laid over each other. What stands in it: docs/recording.md.
//
// Thread contract: a free function that opens the runs' databases.

#include <span>
#include <string>

#include "base/status.h"
#include "profiler/runs/run_figures.h"

namespace sluice::report {

inline constexpr std::size_t kCurvesMax = 32;  // runs whose curves are in the page: the first ones

// The page. All text of the databases is data in it. A run whose curves cannot be read has none.
Result<std::string> runs_report(std::span<const runs::RunFigures> runs);

}  // namespace sluice::report
