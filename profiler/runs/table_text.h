#pragma once
// The cells of a table of runs as people read them, and what a run is called among others.
//
// Thread contract: free functions.

#include <span>
#include <string>
#include <vector>

#include "profiler/runs/run_table.h"

namespace sluice::runs {

// "3.51 s", "1.62 GB", "2.4063"; "-": there is none.
std::string text_of(const Column& column, const rundb::Cell& cell);

// The paths without the file of a folder that has no other run ("out/tiny" of "out/tiny/run.db"),
// and without the folders that all of them begin with.
std::vector<std::string> short_names(std::span<const RunFigures> runs);

}  // namespace sluice::runs
