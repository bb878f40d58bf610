#pragma once
// A step's explanation for a terminal: its causes beside the usual ones, and a sentence for each
// that took more.
//
// Thread contract: free function.

#include <string>

#include "profiler/analyze/step_explanation.h"

namespace sluice::cli {

// Lines of at most `columns`; ends with a line feed.
std::string explanation_text(const analyze::StepExplanation& explanation, int columns);

}  // namespace sluice::cli
