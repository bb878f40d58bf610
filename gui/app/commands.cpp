#include "gui/app/commands.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <sstream>

#include "base/small_letters.h"
#include "gui/widgets/look.h"
#include "gui/widgets/panel.h"
#include "gui/widgets/text_input.h"

namespace sluice::gui {
namespace {

constexpr std::array<std::pair<const char*, const char*>, 13> kMouse = {{
    {"wheel, Ctrl+wheel", "zoom at the cursor"},
    {"W, S held", "zoom at the cursor, also + - up down"},
    {"A, D held", "pan, also left right"},
    {"drag", "pan"},
    {"Ctrl+drag", "zoom to a stretch"},
    {"Shift+drag", "measure a range, with sums"},
    {"Shift+wheel", "scroll the tracks, also the bar at the right"},
    {"click on a span", "choose it: what set it off, what it set off"},
    {"double click", "fit the span, else the step, under the cursor"},
    {"click on a group's name", "fold or unfold the group"},
    {"Enter, Shift+Enter", "in Find: the next match, the previous one"},
    {"Esc", "close Shortcuts, Find; clear what is selected"},
    {"drag in the strip above", "move through the whole run"},
}};

void draw_keys(const char* keys, const char* what) {
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  const FontScope font(look().mono, Look::kTextSize);
  draw_coloured(look().colours.accent, keys, false);
  ImGui::TableNextColumn();
  const FontScope text(look().text, Look::kTextSize);
  ImGui::TextUnformatted(what);
}

}  // namespace

bool can_run(const Command& command) { return !command.is_there || command.is_there(); }

void run_pressed(const std::vector<Command>& commands) {
  const bool is_typing = ImGui::GetIO().WantTextInput;
  for (const Command& command : commands) {
    if (command.chord == 0 || (is_typing && !command.while_typing) || !can_run(command)) continue;
    if (ImGui::IsKeyChordPressed(command.chord)) {
      command.run();
      return;
    }
  }
}

void draw_menus(const std::vector<Command>& commands) {
  std::vector<std::string> menus;
  for (const Command& command : commands) {
    if (std::ranges::find(menus, command.menu) == menus.end()) menus.push_back(command.menu);
  }
  for (const std::string& menu : menus) {
    if (!ImGui::BeginMenu(menu.c_str())) continue;
    for (const Command& command : commands) {
      if (command.menu != menu) continue;
      const bool is_on = command.is_on && command.is_on();
      if (ImGui::MenuItem(command.name.c_str(), command.keys.c_str(), is_on, can_run(command)))
        command.run();
    }
    ImGui::EndMenu();
  }
}

std::vector<const Command*> matching(const std::vector<Command>& commands,
                                     const std::string& text) {
  std::vector<const Command*> found;
  for (const Command& command : commands) {
    if (!can_run(command)) continue;
    const std::string name = small_letters(command.menu + " " + command.name);
    std::istringstream words(small_letters(text));
    bool holds_all = true;
    for (std::string word; words >> word;) holds_all = holds_all && name.find(word) != name.npos;
    if (holds_all) found.push_back(&command);
  }
  return found;
}

void CommandPalette::open() {
  is_opening_ = true;
  text_.clear();
  chosen_ = 0;
}

void CommandPalette::draw(const std::vector<Command>& commands) {
  constexpr const char* kName = "Command palette";
  if (is_opening_) ImGui::OpenPopup(kName);
  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  const float width = std::min(px(520), viewport->WorkSize.x - px(40));
  ImGui::SetNextWindowPos({viewport->GetCenter().x - width / 2, viewport->WorkPos.y + px(60)});
  ImGui::SetNextWindowSize({width, 0});
  if (!ImGui::BeginPopup(kName)) return;
  if (is_opening_) ImGui::SetKeyboardFocusHere();
  is_opening_ = false;
  ImGui::SetNextItemWidth(-1);
  const std::string before = text_;
  const bool is_entered = input_line("##command", "What should be done?", text_);
  if (text_ != before) chosen_ = 0;
  const std::vector<const Command*> found = matching(commands, text_);
  if (ImGui::IsKeyPressed(ImGuiKey_DownArrow)) chosen_ += 1;
  if (ImGui::IsKeyPressed(ImGuiKey_UpArrow) && chosen_ > 0) chosen_ -= 1;
  if (found.empty()) draw_empty("No command has these words.");
  chosen_ = found.empty() ? 0 : std::min(chosen_, found.size() - 1);
  const Command* wanted = is_entered && !found.empty() ? found[chosen_] : nullptr;
  if (ImGui::BeginChild("##found", {0, std::min(px(360), px(26) * 14)})) {
    for (std::size_t i = 0; i < found.size(); ++i) {
      const std::string label = found[i]->menu + ": " + found[i]->name;
      if (ImGui::Selectable(label.c_str(), i == chosen_)) wanted = found[i];
      if (i == chosen_) ImGui::SetScrollHereY();
      if (found[i]->keys.empty()) continue;
      ImGui::SameLine();
      draw_figure(found[i]->keys, look().colours.dim);
    }
  }
  ImGui::EndChild();
  if (wanted != nullptr) ImGui::CloseCurrentPopup();
  ImGui::EndPopup();
  if (wanted != nullptr) wanted->run();
}

void draw_shortcut_sheet(const std::vector<Command>& commands, bool* is_open) {
  constexpr const char* kName = "Shortcuts";
  if (!*is_open) return;
  ImGui::SetNextWindowPos(ImGui::GetMainViewport()->GetCenter(), ImGuiCond_Appearing, {0.5F, 0.5F});
  const ImGuiWindowFlags flags = ImGuiWindowFlags_AlwaysAutoResize | ImGuiWindowFlags_NoDocking |
                                 ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoCollapse;
  if (ImGui::Begin(kName, is_open, flags)) {
    if (ImGui::BeginTable("##columns", 2, ImGuiTableFlags_SizingFixedFit)) {
      ImGui::TableNextColumn();
      draw_title("Everywhere");
      if (ImGui::BeginTable("##keys", 2, ImGuiTableFlags_SizingFixedFit, {px(430), 0})) {
        for (const Command& command : commands) {
          if (!command.keys.empty()) draw_keys(command.keys.c_str(), command.name.c_str());
        }
        ImGui::EndTable();
      }
      ImGui::TableNextColumn();
      draw_title("On the timeline");
      if (ImGui::BeginTable("##mouse", 2, ImGuiTableFlags_SizingFixedFit, {px(440), 0})) {
        for (const auto& [keys, what] : kMouse) draw_keys(keys, what);
        ImGui::EndTable();
      }
      ImGui::EndTable();
    }
  }
  ImGui::End();
}

}  // namespace sluice::gui
