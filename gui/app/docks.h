#pragma once
// Views in their docks: the layout of a first start, and which view comes to the front.
//
// Thread contract: the frame thread, between ImGui's NewFrame and Render.

#include <imgui.h>

#include <memory>
#include <vector>

#include "gui/app/settings.h"
#include "gui/views/foreground.h"
#include "gui/views/view.h"

namespace sluice::gui {

class Docks {
 public:
  // Draws every open view into its dock, and tells `settings` which are closed.
  void draw(const std::vector<std::unique_ptr<View>>& views, Foreground& foreground,
            Settings& settings);
  // The layout of a first start again, from the next frame on.
  void lay_out_again() { lays_out_ = true; }

 private:
  void draw_space(Foreground& foreground);
  void lay_out(ImGuiID dock, Foreground& foreground);
  void dock_new_views(const std::vector<std::unique_ptr<View>>& views, Foreground& foreground);
  void draw_views(const std::vector<std::unique_ptr<View>>& views, Foreground& foreground,
                  Settings& settings);

  bool lays_out_ = false;
  bool has_docked_new_views_ = false;
  int docking_frames_ = 0;  // until windows are in their docks, none can come to the front
};

}  // namespace sluice::gui
