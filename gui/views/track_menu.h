#pragma once
// What somebody does with the names of tracks: a field that chooses among them, and the menu of a
// right click on one.
//
// Thread contract: the frame thread, inside an ImGui window.

#include <string>

#include "gui/views/timeline_state.h"

namespace sluice::gui {

struct TimelineRow;

class TrackMenu {
 public:
  explicit TrackMenu(TimelineState& timeline) : timeline_(timeline) {}
  void draw_field(float width);
  // From the next draw() on, until something is chosen.
  void open(const TimelineRow& row);
  void draw();

 private:
  TimelineState& timeline_;
  std::string text_;
  std::string group_;  // of the row that was asked about
  std::string label_;
};

}  // namespace sluice::gui
