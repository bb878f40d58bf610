#pragma once
// A word of the window itself, undocked and not kept in the layout: in the middle of an empty
// window, and above a picture in a bar of its own, so that it lies over nothing.
//
// Thread contract: the frame thread, between ImGui's NewFrame and Render; before what is docked.

#include <imgui.h>

#include <string>

namespace sluice::gui {

// ImGui::Begin in the middle of the window, `below` pixels under the menu, as high as its content.
// ImGui::End follows in any case.
bool begin_panel(const char* name, float width_max, float below);

// For as long as the object lives.
class Notice {
 public:
  enum class Place : std::uint8_t {
    panel,  // in the middle; its sentences stand below one another
    bar,    // one line beneath the top bar; a sentence without room is cut, its tooltip is whole
  };
  Notice(const char* name, Place place, ImU32 border);
  ~Notice();
  Notice(const Notice&) = delete;
  Notice& operator=(const Notice&) = delete;
  bool is_shown() const { return is_shown_; }

  void say(const std::string& title, const std::string& text, const std::string& note = {});
  // Beside the ones before it. True: it was pressed.
  bool button(const char* label);

 private:
  void say_in_line(const std::string& title, const std::string& text);

  const Place place_;
  bool is_shown_ = false;
  bool has_button_ = false;
};

}  // namespace sluice::gui
