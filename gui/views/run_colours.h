#pragma once
// The colours of causes and phases (base/colour.h) in the theme of the window.
//
// Thread contract: the frame thread.

#include "gui/widgets/look.h"
#include "profiler/analyze/cause.h"
#include "profiler/analyze/phase.h"

namespace sluice::gui {

inline ImU32 colour_of(analyze::Cause cause) { return themed(analyze::cause_colour(cause)); }
inline ImU32 colour_of(analyze::Phase phase) { return themed(analyze::phase_info(phase).colour); }

}  // namespace sluice::gui
