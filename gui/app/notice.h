#pragma once
// A panel that is no view: in the middle of the window, undocked, not kept in the layout.
//
// Thread contract: the frame thread, between ImGui's NewFrame and Render.

#include <imgui.h>

namespace sluice::gui {

// ImGui::Begin in the middle of the window, `below` pixels under the menu, as high as its content.
// ImGui::End follows in any case.
bool begin_panel(const char* name, float width_max, float below);

// A panel above all else, whatever is docked below, for as long as the object lives.
class Notice {
 public:
  Notice(const char* name, float width_max, float below, ImU32 border);
  ~Notice();
  Notice(const Notice&) = delete;
  Notice& operator=(const Notice&) = delete;
  bool is_shown() const { return is_shown_; }

 private:
  bool is_shown_;
};

}  // namespace sluice::gui
