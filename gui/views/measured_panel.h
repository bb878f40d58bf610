#pragma once
// The measured range's name, length and sums, in a corner of the timeline until it is dismissed.
//
// Thread contract: the frame thread.

#include <imgui.h>

#include "gui/views/timeline_state.h"

namespace sluice::gui {

// `corner`: where its lower right one lies.
void draw_measured_panel(const RunPieces& pieces, TimelineState& timeline, ImVec2 corner);

}  // namespace sluice::gui
