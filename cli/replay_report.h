#pragma once
// What a replay found, as text.
//
// Thread contract: main thread.

#include <string>

#include "core/replay/what_if_answer.h"

namespace sluice::cli {

// Lines with marks of paint.h, for print_lines(); none is wider than `columns`, but where a name
// has no place to break.
std::string replay_text(const replay::ReplayAnswer& answer, int columns);

}  // namespace sluice::cli
