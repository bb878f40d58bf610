#pragma once
// The outcomes of analyses, for every view that shows some.
//
// Thread contract: the frame thread.

#include <span>

#include "profiler/analyze/answer.h"

namespace sluice::gui {

// Those without a result, in lines: what could not look first, then what found nothing.
void draw_looked(std::span<const analyze::Answer> answers);

}  // namespace sluice::gui
