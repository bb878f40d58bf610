#pragma once
// The outcome of every analysis, for a terminal.
//
// Thread contract: free function.

#include <span>
#include <string>

#include "profiler/analyze/answer.h"

namespace sluice::cli {

// Lines of at most `columns`; ends with a line feed.
std::string answers_text(std::span<const analyze::Answer> answers, int columns);

}  // namespace sluice::cli
