#pragma once
// What is kept from one start to the next, beside ImGui's layout in the same file:
// ${XDG_CONFIG_HOME:-~/.config}/sluice/gui.ini.
//
// Thread contract: the main thread.

#include <string>
#include <vector>

#include "gui/widgets/look.h"

namespace sluice::gui {

struct Settings {
  Theme theme = Theme::dark;
  std::vector<std::string> recent;  // run databases, the last one first

  std::vector<std::string> closed;  // titles of views that somebody closed

  void note_opened(const std::string& path);
  void note_view(const std::string& title, bool is_open);
};

inline constexpr std::size_t kRecentMax = 12;

std::string settings_path();
// Makes ImGui read and write them with its own; they live as long as its context.
void register_settings(Settings& settings);

}  // namespace sluice::gui
