#pragma once
// Both kinds of page, that of a run and that of a comparison, say these of a run in the same way.
//
// Thread contract: free functions.

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <vector>

#include "profiler/analyze/run_data.h"
#include "storage/rundb/rows.h"

namespace sluice::report::detail {

// Colours of all stages of the runs, of causes and phases, each {"dark": ..., "light": ...}. A
// stage has the colour of the first run that knows it.
nlohmann::ordered_json colours_json(std::initializer_list<const analyze::RunInfo*> runs);

// Step, what changed, and who asked.
nlohmann::ordered_json changes_json(const std::vector<rundb::KnobChangeRow>& changes);

}  // namespace sluice::report::detail
