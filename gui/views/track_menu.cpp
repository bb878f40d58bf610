#include "gui/views/track_menu.h"

#include <imgui.h>

#include "gui/views/timeline_layout.h"
#include "gui/widgets/text_input.h"

namespace sluice::gui {

void TrackMenu::draw_field(float width) {
  TrackChoice& choice = timeline_.rows.choice();
  if (!ImGui::IsAnyItemActive()) text_ = choice.text();  // the menu may have changed it
  ImGui::SetNextItemWidth(width);
  input_line("##tracks", "Tracks by name", text_);
  ImGui::SetItemTooltip(
      "csd0 update: tracks with either word in their names. -csd0: none with that one.\n"
      "A right click on a name pins its group on top, or hides it.");
  if (text_ != choice.text()) choice.set_text(text_);
}

void TrackMenu::open(const TimelineRow& row) {
  group_ = row.group;
  label_ = row.label;
  ImGui::OpenPopup("##track");
}

void TrackMenu::draw() {
  if (!ImGui::BeginPopup("##track")) return;
  TrackChoice& choice = timeline_.rows.choice();
  if (ImGui::MenuItem(("Only " + group_).c_str())) choice.show_only(group_);
  if (ImGui::MenuItem(("Hide " + label_).c_str())) choice.hide(label_);
  const bool is_pinned = choice.is_pinned(group_);
  if (ImGui::MenuItem(((is_pinned ? "Unpin " : "Pin on top: ") + group_).c_str()))
    choice.toggle_pin(group_);
  if (ImGui::MenuItem("All tracks", nullptr, false, !choice.text().empty())) choice.set_text("");
  ImGui::EndPopup();
}

}  // namespace sluice::gui
