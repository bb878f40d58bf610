#pragma once
// Reasons to doubt a run's figures (profiler/analyze/doubts.h), where the figures stand.
//
// Thread contract: the frame thread.

#include "gui/views/run_pieces.h"

namespace sluice::gui {

// The marks in one amber line, beneath a panel's title, the sentences as its tooltip. Nothing where
// nothing is in doubt, or the run has not been looked at yet.
void draw_doubt_line(const RunPieces& pieces);
// The sentences themselves.
void draw_doubts(const RunPieces& pieces);

}  // namespace sluice::gui
