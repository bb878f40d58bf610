#include "gui/widgets/panel.h"

#include <algorithm>

#include "gui/widgets/figures.h"
#include "gui/widgets/look.h"

namespace sluice::gui {

void draw_title(const std::string& title, const std::string& note) {
  const float begin_x = ImGui::GetCursorPosX();
  const float room = ImGui::GetContentRegionAvail().x;
  {
    const FontScope font(look().bold, Look::kTitleSize);
    ImGui::TextUnformatted(title.c_str());
  }
  const float title_end_x = begin_x + ImGui::GetItemRectSize().x;
  if (note.empty()) return;
  const FontScope font(look().text, Look::kSmallSize);
  const float x = begin_x + room - ImGui::CalcTextSize(note.c_str()).x;
  if (x < title_end_x + px(8)) return;  // no room: the tooltip of the view says it, too
  ImGui::SameLine(x);
  ImGui::PushStyleColor(ImGuiCol_Text, look().colours.dim);
  ImGui::TextUnformatted(note.c_str());
  ImGui::PopStyleColor();
}

void draw_empty(std::string_view sentence) {
  draw_coloured(look().colours.dim, std::string(sentence));
}

void draw_note(const std::string& text) {
  const FontScope font(look().text, Look::kSmallSize);
  draw_empty(text);
}

void draw_coloured(ImU32 colour, const std::string& text, bool is_wrapped) {
  ImGui::PushStyleColor(ImGuiCol_Text, colour);
  if (is_wrapped) {
    ImGui::PushTextWrapPos(0);
    ImGui::TextUnformatted(with_units_kept(text).c_str());
    ImGui::PopTextWrapPos();
  } else {
    ImGui::TextUnformatted(text.c_str());
  }
  ImGui::PopStyleColor();
}

void tip_above(const char* text) {
  if (!ImGui::IsItemHovered(ImGuiHoveredFlags_ForTooltip | ImGuiHoveredFlags_AllowWhenDisabled))
    return;
  const ImVec2 at = ImGui::GetItemRectMin();
  const ImGuiViewport* window = ImGui::GetMainViewport();
  const float width = ImGui::CalcTextSize(text).x + 2 * ImGui::GetStyle().WindowPadding.x;
  const float left_max = window->WorkPos.x + window->WorkSize.x - width;
  ImGui::SetNextWindowPos({std::max(window->WorkPos.x, std::min(at.x, left_max)), at.y - px(4)},
                          ImGuiCond_Always, {0, 1});
  ImGui::SetTooltip("%s", text);
}

bool draw_link(const char* id, const std::string& text, ImU32 colour, LinkWidth width) {
  const std::string words = text + "\u2009\u203a";  // more than colour says that it leads somewhere
  const char* end = words.c_str() + words.size();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float all = std::max(1.0F, ImGui::GetContentRegionAvail().x);
  const ImVec2 size = ImGui::CalcTextSize(words.c_str(), end, false, all);
  const float room = width == LinkWidth::line ? all : std::max(1.0F, size.x);
  const bool is_clicked = ImGui::InvisibleButton(id, {room, std::max(1.0F, size.y)});
  ImDrawList* list = ImGui::GetWindowDrawList();
  if (ImGui::IsItemHovered()) {
    ImGui::SetMouseCursor(ImGuiMouseCursor_Hand);
    list->AddRectFilled(at, {at.x + room, at.y + size.y}, with_alpha(look().colours.accent, 0.16F),
                        px(2));
  }
  list->AddText(ImGui::GetFont(), ImGui::GetFontSize(), at, colour, words.c_str(), end, room);
  return is_clicked;
}

ImVec2 figure_size(const std::string& text) {
  const FontScope font(look().mono, Look::kTextSize);
  return ImGui::CalcTextSize(text.c_str());
}

void draw_figure(const std::string& text, ImU32 colour) {
  const FontScope font(look().mono, Look::kTextSize);
  const float width = ImGui::CalcTextSize(text.c_str()).x;
  const float room = ImGui::GetContentRegionAvail().x;
  if (room > width) ImGui::SetCursorPosX(ImGui::GetCursorPosX() + room - width);
  ImGui::PushStyleColor(ImGuiCol_Text, colour != 0 ? colour : look().colours.text);
  ImGui::TextUnformatted(text.c_str());
  ImGui::PopStyleColor();
}

void draw_dot(ImU32 colour) {
  const float line = ImGui::GetTextLineHeight();
  const float side = px(10);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const ImVec2 low = {at.x, at.y + (line - side) / 2};
  ImGui::GetWindowDrawList()->AddRectFilled(low, {low.x + side, low.y + side}, colour, px(2));
  ImGui::Dummy({side, line});
}

void draw_meter(double share, ImU32 colour, ImVec2 size) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float line = std::max(ImGui::GetTextLineHeight(), size.y);
  const ImVec2 low = {at.x, at.y + (line - size.y) / 2};
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImVec2 high = {low.x + size.x, low.y + size.y};
  list->AddRectFilled(low, high, look().colours.inset, px(2));
  const auto filled = static_cast<float>(std::clamp(share, 0.0, 1.0));
  if (filled > 0) {
    list->AddRectFilled(low, {low.x + std::max(1.0F, size.x * filled), high.y}, colour, px(2));
  }
  ImGui::Dummy({size.x, line});
}

void draw_strip(const char* id, const std::vector<StripPart>& parts, float height) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = std::max(1.0F, ImGui::GetContentRegionAvail().x);
  ImGui::InvisibleButton(id, {width, height});
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled(at, {at.x + width, at.y + height}, look().colours.inset, px(2));
  double begin = 0;
  for (const StripPart& part : parts) {
    const ImVec2 low = {at.x + static_cast<float>(begin) * width, at.y};
    begin += part.share;
    const ImVec2 high = {at.x + static_cast<float>(std::min(1.0, begin)) * width, at.y + height};
    list->AddRectFilled(low, high, part.colour);
    if (ImGui::IsItemHovered() && ImGui::IsMouseHoveringRect(low, high))
      ImGui::SetTooltip("%s", part.tip.c_str());
  }
}

void mark_table_row() {
  ImGui::TableSetBgColor(ImGuiTableBgTarget_RowBg1, with_alpha(look().colours.accent, 0.28F));
}

void draw_pair(const char* what, const std::string& figure) {
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  draw_coloured(look().colours.dim, what, false);
  ImGui::TableNextColumn();
  draw_figure(figure);
}

}  // namespace sluice::gui
