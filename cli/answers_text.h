#pragma once
// What became of every analysis, for a terminal and as JSON.
//
// Thread contract: free functions.

#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "profiler/analyze/answer.h"

namespace sluice::cli {

// Lines of at most `columns`; ends with a line feed.
std::string answers_text(std::span<const analyze::Answer> answers, int columns);
// [{"of": "slow steps", "outcome": "nothing found", "why": "58 steps"}, ...]
nlohmann::ordered_json answers_json(std::span<const analyze::Answer> answers);

}  // namespace sluice::cli
