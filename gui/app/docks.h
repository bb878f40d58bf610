#pragma once
// Views in their docks: the layout of a first start, and which view comes to the front.
//
// Thread contract: the frame thread, between ImGui's NewFrame and Render.

#include <imgui.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
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
  // The parts that a window has no room for, in units of the scale.
  struct Shape {
    bool is_narrow = false;  // three columns
    bool is_low = false;     // panes below one another
    bool operator==(const Shape&) const = default;
  };
  static Shape shape_of(ImVec2 size);
  static std::optional<Shape> read_shape(const std::string& kept);
  void note_shape(const std::vector<std::unique_ptr<View>>& views, Settings& settings);
  void fit_sides(ImGuiID dock);
  void draw_space(const std::vector<std::unique_ptr<View>>& views, Foreground& foreground);
  bool is_as_laid_out(const std::vector<std::unique_ptr<View>>& views) const;
  void place(const char* title, ImGuiID dock);
  void lay_out(ImGuiID dock, const std::vector<std::unique_ptr<View>>& views,
               Foreground& foreground);
  void dock_new_views(const std::vector<std::unique_ptr<View>>& views, Foreground& foreground);
  void draw_views(const std::vector<std::unique_ptr<View>>& views, Foreground& foreground,
                  Settings& settings);

  bool lays_out_ = false;
  // As which the docks were made; none: somebody has made others.
  std::optional<Shape> shape_;
  std::map<std::string, ImGuiID> places_;  // of each view then
  ImVec2 fitted_;                          // the window's size to which they were fitted
  bool has_read_shape_ = false;
  bool has_docked_new_views_ = false;
  int docking_frames_ = 0;  // until windows are in their docks, none can come to the front
};

}  // namespace sluice::gui
