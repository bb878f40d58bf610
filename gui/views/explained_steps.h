#pragma once
// Why the chosen steps took as long as they did (profiler/analyze/step_explanation.h), in Details:
// causes beside the usual ones, each a link to the operations that made the difference.
//
// Thread contract: the frame thread.

#include "gui/views/foreground.h"
#include "gui/views/run_pieces.h"
#include "gui/views/timeline_state.h"

namespace sluice::gui {

void draw_explained_steps(const RunPieces& pieces, TimelineState& timeline, Foreground& foreground);

}  // namespace sluice::gui
