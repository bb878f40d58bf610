#include "gui/app/settings.h"

#include <imgui.h>
#include <imgui_internal.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>

namespace sluice::gui {
namespace {

constexpr std::string_view kTheme = "Theme=";
constexpr std::string_view kRecent = "Recent=";
constexpr std::string_view kClosed = "Closed=";
constexpr std::string_view kDocks = "Docks=";

void* open_section(ImGuiContext*, ImGuiSettingsHandler* handler, const char*) {
  return handler->UserData;
}

void read_line(ImGuiContext*, ImGuiSettingsHandler*, void* entry, const char* text) {
  auto& settings = *static_cast<Settings*>(entry);
  const std::string_view line = text;
  if (line.starts_with(kTheme))
    settings.theme = line.substr(kTheme.size()) == "light" ? Theme::light : Theme::dark;
  if (line.starts_with(kRecent) && settings.recent.size() < kRecentMax)
    settings.recent.emplace_back(line.substr(kRecent.size()));
  if (line.starts_with(kDocks)) settings.docks = line.substr(kDocks.size());
  if (line.starts_with(kClosed)) settings.closed.emplace_back(line.substr(kClosed.size()));
}

void write_all(ImGuiContext*, ImGuiSettingsHandler* handler, ImGuiTextBuffer* text) {
  const auto& settings = *static_cast<const Settings*>(handler->UserData);
  text->appendf("[%s][Window]\n", handler->TypeName);
  text->appendf("Theme=%s\n", settings.theme == Theme::light ? "light" : "dark");
  for (const std::string& path : settings.recent) text->appendf("Recent=%s\n", path.c_str());
  for (const std::string& title : settings.closed) text->appendf("Closed=%s\n", title.c_str());
  if (!settings.docks.empty()) text->appendf("Docks=%s\n", settings.docks.c_str());
  text->append("\n");
}

}  // namespace

void Settings::note_opened(const std::string& path) {
  // A line of the file is a path; one with a line feed in it is not kept.
  if (path.find('\n') != std::string::npos) return;
  std::erase(recent, path);
  recent.insert(recent.begin(), path);
  if (recent.size() > kRecentMax) recent.resize(kRecentMax);
  ImGui::MarkIniSettingsDirty();
}

void Settings::note_view(const std::string& title, bool is_open) {
  const bool was_open = std::ranges::find(closed, title) == closed.end();
  if (was_open == is_open) return;
  std::erase(closed, title);
  if (!is_open) closed.push_back(title);
  ImGui::MarkIniSettingsDirty();
}

void Settings::note_docks(const std::string& laid_out_as) {
  if (docks == laid_out_as) return;
  docks = laid_out_as;
  ImGui::MarkIniSettingsDirty();
}

std::string settings_path() {
  const char* config = std::getenv("XDG_CONFIG_HOME");
  const char* home = std::getenv("HOME");
  std::filesystem::path folder;
  if (config != nullptr && *config != '\0') {
    folder = config;
  } else {
    folder = std::filesystem::path(home == nullptr ? "." : home) / ".config";
  }
  folder /= "sluice";
  // Where that fails, layouts are not kept, which ImGui takes in silence.
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  return (folder / "gui.ini").string();
}

SettingsFile::SettingsFile(Settings& settings, const std::string& path) : file_(path) {
  // ImGui would write the file itself, within a frame.
  ImGui::GetIO().IniFilename = nullptr;
  ImGuiSettingsHandler handler;
  handler.TypeName = "Sluice";
  handler.TypeHash = ImHashStr("Sluice");
  handler.UserData = &settings;
  handler.ReadOpenFn = open_section;
  handler.ReadLineFn = read_line;
  handler.WriteAllFn = write_all;
  ImGui::AddSettingsHandler(&handler);
  if (!path.empty()) ImGui::LoadIniSettingsFromDisk(path.c_str());
}

void SettingsFile::keep_changes() {
  ImGuiIO& io = ImGui::GetIO();
  if (!io.WantSaveIniSettings) return;
  io.WantSaveIniSettings = false;
  keep();
}

void SettingsFile::keep() { file_.keep(ImGui::SaveIniSettingsToMemory()); }

}  // namespace sluice::gui
