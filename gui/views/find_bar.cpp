#include "gui/views/find_bar.h"

#include <fmt/format.h>

#include <algorithm>

#include "gui/data/span_lookup.h"
#include "gui/views/run_pieces.h"
#include "gui/widgets/figures.h"
#include "gui/widgets/look.h"
#include "gui/widgets/panel.h"
#include "gui/widgets/text_input.h"

namespace sluice::gui {
namespace {

bool small_tool(const char* label, const char* tip) {
  const bool is_pressed = ImGui::Button(label);
  ImGui::SetItemTooltip("%s", tip);
  ImGui::SameLine();
  return is_pressed;
}

}  // namespace

void FindBar::draw() {
  const float room = ImGui::GetContentRegionAvail().x;
  ImGui::SetNextItemWidth(std::clamp(room, px(80), px(170)));
  if (timeline_.search.take_focus() || keeps_keyboard_) ImGui::SetKeyboardFocusHere();
  keeps_keyboard_ = false;
  if (text_ != timeline_.search.text() && !ImGui::IsAnyItemActive())
    text_ = timeline_.search.text();
  const bool is_entered = input_line("##search", "Find a span by name", text_);
  if (ImGui::IsItemDeactivated() && ImGui::IsKeyPressed(ImGuiKey_Escape)) {
    text_.clear();
    timeline_.search.look_for("");
  } else if (text_ != timeline_.search.text() && (ImGui::IsItemActive() || is_entered)) {
    timeline_.search.look_for(text_);
  }
  if (is_entered) take_enter();
  // The match has a line of its own where it would be cut beside the field.
  const bool has_room = room >= px(170 + 220);
  if (has_room || timeline_.search.text().empty()) ImGui::SameLine();
  if (timeline_.search.text().empty()) return;
  if (small_tool("<", "Shift+Enter, Shift+N: the previous match")) timeline_.show_found(-1);
  if (small_tool(">", "Enter, N: the next match")) timeline_.show_found(1);
  draw_outcome();
  ImGui::SameLine();
}

void FindBar::take_enter() {
  timeline_.show_found(ImGui::GetIO().KeyShift ? -1 : 1);
  keeps_keyboard_ = true;
}

void FindBar::draw_outcome() const {
  const Findings* found = pieces_.found.get();
  if (found == nullptr || found->text != timeline_.search.text()) {
    draw_coloured(look().colours.dim, "looking\u2026", false);
    return;
  }
  if (found->spans.empty()) {
    draw_coloured(look().colours.amber, "no span has that in its name", false);
    return;
  }
  const std::string count = grouped_text(static_cast<std::int64_t>(found->spans.size())) +
                            (found->is_cut ? " first" : "");
  if (!timeline_.search.found_index()) {
    draw_coloured(look().colours.dim, count + ": Enter shows one", false);
    return;
  }
  const auto number = static_cast<std::int64_t>(*timeline_.search.found_index() + 1);
  draw_coloured(look().colours.dim, fmt::format("{} of {}", grouped_text(number), count), false);
  if (!timeline_.search.has_wrapped()) return;
  ImGui::SameLine();
  // A wrap to the front shows the first, one to the back the last.
  draw_coloured(
      look().colours.amber,
      number == 1 ? "past the last: from the first again" : "past the first: from the last again",
      false);
}

}  // namespace sluice::gui
