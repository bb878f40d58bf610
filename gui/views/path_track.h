#pragma once
// The critical path as a track beneath the steps: what each stretch of a step's time was spent on.
// It stays in place while the rows scroll.
//
// Thread contract: the frame thread, inside the window of the timeline.

#include <imgui.h>

#include "gui/data/step_paths.h"
#include "gui/views/run_pieces.h"
#include "gui/views/timeline_painter.h"
#include "gui/views/timeline_state.h"
#include "gui/widgets/look.h"

namespace sluice::gui {

inline constexpr float kPathHeight = 16;  // before scaling: what the axis has more for it

class PathTrack {
 public:
  PathTrack(const RunPieces& pieces, const TimelineState& timeline, const TimelinePlace& place)
      : pieces_(pieces), timeline_(timeline), place_(place) {}

  void draw() const;
  // The piece under the mouse, with its step; null: none. As long as the paths live.
  struct PieceAt {
    const analyze::PathPiece* piece = nullptr;
    const StepPath* step = nullptr;
  };
  PieceAt piece_at(ImVec2 mouse) const;
  void draw_tip(ImVec2 mouse) const;

 private:
  void draw_label(ImDrawList* list) const;
  void draw_step(ImDrawList* list, const StepPath& path) const;
  const char* why_empty() const;  // null: there is something
  float top() const { return place_.low.y - px(kPathHeight) + px(1); }
  float bottom() const { return place_.low.y - px(2); }

  const RunPieces& pieces_;
  const TimelineState& timeline_;
  const TimelinePlace& place_;
};

}  // namespace sluice::gui
