#include "gui/views/timeline_place.h"

#include "gui/widgets/look.h"

namespace sluice::gui {

float tag_width(const std::string& text) {
  const FontScope font(look().bold, Look::kSmallSize);
  return ImGui::CalcTextSize(text.c_str()).x + px(8);
}

void draw_tag(ImDrawList* list, const TimelinePlace& place, ImVec2 at, const std::string& text,
              ImU32 colour) {
  const FontScope font(look().bold, Look::kSmallSize);
  const ImVec2 size = ImGui::CalcTextSize(text.c_str());
  const float left =
      std::clamp(at.x, place.low.x, std::max(place.low.x, place.high.x - size.x - px(8)));
  list->AddRectFilled({left, at.y}, {left + size.x + px(8), at.y + size.y + px(2)}, colour, px(2));
  list->AddText({left + px(4), at.y + px(1)}, text_on(colour), text.c_str());
}

}  // namespace sluice::gui
