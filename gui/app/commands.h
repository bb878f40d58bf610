#pragma once
// The commands, once: the menu, the palette (Ctrl+P), the shortcut sheet (?) and the keys
// themselves come from this list.
//
// Thread contract: the frame thread.

#include <imgui.h>

#include <functional>
#include <string>
#include <vector>

namespace sluice::gui {

struct Command {
  std::string menu = {};  // "File", "View", ...
  std::string name = {};  // "Open a run..."
  std::string keys = {};  // "Ctrl+O"; empty: none
  ImGuiKeyChord chord = 0;
  std::function<void()> run = {};
  std::function<bool()> is_on = {};     // shown as a check mark; empty: it is no switch
  std::function<bool()> is_there = {};  // empty: always
  bool while_typing = false;            // its keys count in a text field, too
};

bool can_run(const Command& command);
// Runs the first command whose keys were pressed in this frame.
void run_pressed(const std::vector<Command>& commands);
// Draws them inside a menu bar.
void draw_menus(const std::vector<Command>& commands);

// A box in the middle of the window; what is typed chooses among the commands' names.
class CommandPalette {
 public:
  void open();
  void draw(const std::vector<Command>& commands);

 private:
  bool is_opening_ = false;
  std::string text_;
  std::size_t chosen_ = 0;
};

// The commands whose names hold all of the words, in their order.
std::vector<const Command*> matching(const std::vector<Command>& commands, const std::string& text);

// The sheet of all keys, those of the timeline's mouse included.
void draw_shortcut_sheet(const std::vector<Command>& commands, bool* is_open);

}  // namespace sluice::gui
