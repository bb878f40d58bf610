#include "gui/widgets/duration_plot.h"

#include <imgui.h>

#include <algorithm>
#include <cmath>

#include "gui/widgets/figures.h"
#include "gui/widgets/look.h"

namespace sluice::gui {
namespace {

constexpr float kBarsHeight = 44;

// One of a thousand is still seen beside the many.
float height_of(std::int64_t count, std::int64_t most) {
  const auto share = std::log1p(static_cast<double>(count)) / std::log1p(static_cast<double>(most));
  return static_cast<float>(share);
}

void draw_ends(const std::vector<DurationBar>& bars, float left, float width) {
  const FontScope font(look().text, Look::kSmallSize);
  const std::string last = time_text(bars.back().from_ns);
  ImGui::PushStyleColor(ImGuiCol_Text, look().colours.dim);
  ImGui::TextUnformatted(time_text(bars.front().from_ns).c_str());
  ImGui::SameLine(left + width - ImGui::CalcTextSize(last.c_str()).x);
  ImGui::TextUnformatted(last.c_str());
  ImGui::PopStyleColor();
}

}  // namespace

void draw_duration_bars(const char* id, const std::vector<DurationBar>& bars, TimeNs marked_ns) {
  if (bars.empty()) return;
  const float left = ImGui::GetCursorPosX();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = std::max(px(40), ImGui::GetContentRegionAvail().x);
  const float height = px(kBarsHeight);
  ImGui::InvisibleButton(id, {width, height});
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled(at, {at.x + width, at.y + height}, look().colours.inset);
  const std::int64_t most = std::ranges::max_element(bars, {}, &DurationBar::count)->count;
  const float step = width / static_cast<float>(bars.size());
  const auto x_of = [&](std::size_t bar) { return at.x + step * static_cast<float>(bar); };
  for (std::size_t b = 0; b < bars.size(); ++b) {
    if (bars[b].count == 0) continue;
    const float top =
        at.y + height * (1 - height_of(bars[b].count, std::max<std::int64_t>(1, most)));
    list->AddRectFilled({x_of(b), std::min(top, at.y + height - px(1))},
                        {std::max(x_of(b) + px(1), x_of(b + 1) - px(1)), at.y + height},
                        look().colours.accent);
  }
  if (marked_ns >= 0) {
    const auto after = std::ranges::upper_bound(bars, marked_ns, {}, &DurationBar::from_ns);
    const auto bar =
        static_cast<std::size_t>(std::max<std::ptrdiff_t>(0, after - bars.begin() - 1));
    const float x = (x_of(bar) + x_of(bar + 1)) / 2;
    list->AddLine({x, at.y}, {x, at.y + height}, look().colours.amber, px(2));
  }
  if (ImGui::IsItemHovered()) {
    const auto bar =
        std::min(bars.size() - 1,
                 static_cast<std::size_t>(std::max(0.0F, (ImGui::GetMousePos().x - at.x) / step)));
    ImGui::SetTooltip("%s from %s on", grouped_text(bars[bar].count).c_str(),
                      time_text(bars[bar].from_ns).c_str());
  }
  draw_ends(bars, left, width);
}

}  // namespace sluice::gui
