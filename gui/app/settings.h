#pragma once
// The settings that are kept from one start to the next, beside ImGui's layout in the same file:
// ${XDG_CONFIG_HOME:-~/.config}/sluice/gui.ini.
//
// Thread contract: the main thread.

#include <string>
#include <vector>

#include "gui/data/kept_text.h"
#include "gui/widgets/look.h"

namespace sluice::gui {

struct Settings {
  Theme theme = Theme::dark;
  std::vector<std::string> recent;  // run databases, the last one first

  std::vector<std::string> closed;  // titles of views that somebody closed
  std::string docks;                // as which they were laid out; empty: somebody has made others

  void note_opened(const std::string& path);
  void note_view(const std::string& title, bool is_open);
  void note_docks(const std::string& laid_out_as);
};

inline constexpr std::size_t kRecentMax = 12;

// The folder is there afterwards, if it can be made.
std::string settings_path();

// Keeps them with ImGui's own in one file, which another thread writes.
class SettingsFile {
 public:
  // Reads them. ImGui's context lives longer, `settings` too. An empty path keeps nothing.
  SettingsFile(Settings& settings, const std::string& path);
  // After a frame: some seconds after a change it is written.
  void keep_changes();
  // All of it, as it is now.
  void keep();

 private:
  KeptText file_;
};

}  // namespace sluice::gui
