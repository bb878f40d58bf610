#pragma once
// The bar at the top: menus, and what the open run is at and how well it is recorded.
//
// Thread contract: the frame thread, between ImGui's NewFrame and Render.

#include <vector>

#include "gui/app/commands.h"

namespace sluice::gui {

class Opening;
struct RunPieces;

struct FrameCost {
  double last_ms = 0;   // from NewFrame to Render: the processor's time for what is drawn
  double worst_ms = 0;  // of the last hundred frames
  int vertex_count = 0;
};

class TopBar {
 public:
  // `again`: ranks that are being read again; null: none are. True: they are to be read again.
  bool draw(const RunPieces& pieces, const Opening* again, const std::vector<Command>& commands,
            const FrameCost& cost);
  bool shows_cost() const { return shows_cost_; }
  void toggle_cost() { shows_cost_ = !shows_cost_; }

 private:
  bool shows_cost_ = false;
};

}  // namespace sluice::gui
