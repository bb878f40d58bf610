#pragma once
// The rows of a question in SQL as a track above the critical path. It stays in place while the
// rows of the timeline scroll.
//
// Thread contract: the frame thread, inside the window of the timeline.

#include <imgui.h>

#include "gui/views/timeline_place.h"
#include "gui/views/timeline_state.h"
#include "gui/widgets/look.h"

namespace sluice::gui {

struct SqlAnswer;
struct SqlPiece;

inline constexpr float kAnswerHeight = 16;  // before scaling: what the axis has more for it

class AnswerTrack {
 public:
  AnswerTrack(TimelineState& timeline, const TimelinePlace& place)
      : timeline_(timeline), place_(place) {}

  void draw() const;
  // The mouse is on it.
  bool has(ImVec2 mouse) const;
  void draw_tip(ImVec2 mouse) const;
  // A row's span is chosen, or its time comes into view; the label puts the track away.
  void click(ImVec2 mouse) const;

 private:
  // Null: there is none.
  const SqlPiece* piece_at(ImVec2 mouse) const;
  float left_of(const SqlPiece& piece) const;
  float right_of(const SqlPiece& piece) const;
  float top() const { return place_.low.y - place_.path_height - place_.answer_height + px(1); }
  float bottom() const { return place_.low.y - place_.path_height - px(2); }

  TimelineState& timeline_;
  const TimelinePlace& place_;
};

}  // namespace sluice::gui
