#include "gui/views/measured_panel.h"

#include <algorithm>
#include <map>

#include "gui/data/timeline_window.h"
#include "gui/views/run_pieces.h"
#include "gui/widgets/figures.h"
#include "gui/widgets/look.h"
#include "gui/widgets/panel.h"

namespace sluice::gui {
namespace {

constexpr ImGuiWindowFlags kFlags = ImGuiWindowFlags_NoDecoration |
                                    ImGuiWindowFlags_AlwaysAutoResize |
                                    ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoDocking |
                                    ImGuiWindowFlags_NoFocusOnAppearing | ImGuiWindowFlags_NoNav;

struct Sum {
  std::int64_t count = 0;
  double busy_ns = 0;
  double bytes = 0;
};

std::map<std::int32_t, Sum> sums_of(const TimelineWindow& window, const TimeRange& range) {
  std::map<std::int32_t, Sum> sums;
  for (const TrackBoxes& track : window.tracks) {
    for (const Box& box : track.near(range.begin, range.end)) {
      if (box.end_ts <= range.begin || box.ts >= range.end) continue;
      const auto length = static_cast<double>(std::max<TimeNs>(1, box.end_ts - box.ts));
      const TimeNs inside_ns = std::min(range.end, box.end_ts) - std::max(range.begin, box.ts);
      const double share = static_cast<double>(inside_ns) / length;
      Sum& sum = sums[box.name_id];
      sum.count += box.count;
      sum.busy_ns += static_cast<double>(box.busy_ns) * share;
      sum.bytes += static_cast<double>(box.bytes) * share;
    }
  }
  return sums;
}

void draw_sums(const RunFacts& facts, const std::map<std::int32_t, Sum>& sums) {
  if (!ImGui::BeginTable("##sums", 4, ImGuiTableFlags_SizingFixedFit)) return;
  for (const auto& [name_id, sum] : sums) {
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    draw_dot(stage_colour(facts.stage_colour(name_id)));
    ImGui::SameLine();
    ImGui::TextUnformatted(facts.string_of(name_id).c_str());
    ImGui::TableNextColumn();
    draw_figure(grouped_text(sum.count));
    ImGui::TableNextColumn();
    draw_figure(time_text(static_cast<TimeNs>(sum.busy_ns)));
    ImGui::TableNextColumn();
    draw_figure(sum.bytes > 0 ? bytes_text(sum.bytes) : "");
  }
  ImGui::EndTable();
}

}  // namespace

void draw_measured_panel(const RunPieces& pieces, TimelineState& timeline, ImVec2 corner) {
  if (!timeline.measure.range().has_value() || pieces.timeline == nullptr) return;
  const TimeRange range = *timeline.measure.range();
  ImGui::SetNextWindowPos(corner, ImGuiCond_Always, {1, 1});
  ImGui::SetNextWindowBgAlpha(0.94F);
  if (!ImGui::Begin("Measured range", nullptr, kFlags)) {
    ImGui::End();
    return;
  }
  {
    const FontScope title(look().bold, Look::kTextSize);
    ImGui::Text("Measured range: %s", time_text(range.width()).c_str());
  }
  if (!pieces.timeline->has_spans) draw_note("summed from bins: bytes show at a nearer zoom");
  if (!pieces.timeline->covers(range.begin, range.end))
    draw_note("only of what lies near the view");
  draw_sums(pieces.facts(), sums_of(*pieces.timeline, range));
  if (ImGui::SmallButton("Fit")) timeline.view.fit(range);
  ImGui::SameLine();
  if (ImGui::SmallButton("Dismiss")) timeline.measure.forget();
  ImGui::SameLine();
  draw_note("it stays until Dismiss or Esc");
  ImGui::End();
}

}  // namespace sluice::gui
