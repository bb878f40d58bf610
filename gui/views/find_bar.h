#pragma once
// The field that finds spans by name: Enter goes on to the next, Shift+Enter to the one before, Esc
// ends the search.
//
// Thread contract: the frame thread, inside an ImGui window.

#include <string>

#include "gui/views/timeline_state.h"

namespace sluice::gui {

class FindBar {
 public:
  FindBar(const RunPieces& pieces, TimelineState& timeline)
      : pieces_(pieces), timeline_(timeline) {}
  void draw();

 private:
  void take_enter();
  void draw_outcome() const;

  const RunPieces& pieces_;
  TimelineState& timeline_;
  std::string text_;
  bool keeps_keyboard_ = false;  // Enter took it away
};

}  // namespace sluice::gui
