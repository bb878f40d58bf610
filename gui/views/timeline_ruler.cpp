#include "gui/views/timeline_ruler.h"

#include <fmt/format.h>

#include "gui/views/marks.h"
#include "gui/views/run_pieces.h"
#include "gui/widgets/figures.h"
#include "gui/widgets/look.h"
#include "gui/widgets/mark_labels.h"
#include "gui/widgets/panel.h"

namespace sluice::gui {
namespace {

constexpr float kTimesAndSteps = 34;
constexpr float kLine = 16;  // of tags

// In the unit of the distance between two, so that neighbours differ in what is read.
std::string tick_text(TimeNs since_begin, TimeNs distance) {
  const double unit = distance >= 1'000'000'000 ? 1e9
                      : distance >= 1'000'000   ? 1e6
                      : distance >= 1'000       ? 1e3
                                                : 1;
  const char* name = unit == 1e9 ? "s" : unit == 1e6 ? "ms" : unit == 1e3 ? "us" : "ns";
  const auto count = std::llround(static_cast<double>(since_begin) / unit);
  return grouped_text(static_cast<std::int64_t>(count)) + "\u2009" + name;
}

}  // namespace

float ruler_height(const RunFacts& facts) {
  return px(kTimesAndSteps + (facts.changes.empty() ? 0 : kLine));
}

std::optional<TimeNs> begin_of(const ChangeMark& change, const std::vector<rundb::StepRow>& steps) {
  if (steps.empty() || change.step > steps.back().id + 1) return std::nullopt;
  const auto step = std::ranges::lower_bound(steps, change.step, {}, &rundb::StepRow::id);
  return step == steps.end() ? steps.back().ts + steps.back().dur : step->ts;
}

const rundb::StepRow* step_at_or_after(const std::vector<rundb::StepRow>& steps, TimeNs ts) {
  const auto step =
      std::ranges::upper_bound(steps, ts, {}, [](const rundb::StepRow& s) { return s.ts + s.dur; });
  return step == steps.end() ? nullptr : &*step;
}

TimelineRuler::TimelineRuler(const RunPieces& pieces, const TimelinePlace& place)
    : pieces_(pieces), place_(place), list_(ImGui::GetWindowDrawList()) {}

void TimelineRuler::draw_times() {
  const Colours& colours = look().colours;
  const double distance_ns = tick_distance(px(110) / place_.pixels_a_ns());
  const auto distance = std::max<TimeNs>(1, static_cast<TimeNs>(distance_ns));
  const TimeNs zero = pieces_.run->begin_ts;
  const auto first =
      static_cast<TimeNs>(std::floor(static_cast<double>(place_.view.begin - zero) / distance_ns));
  const FontScope font(look().mono, Look::kSmallSize);
  for (TimeNs n = first; zero + n * distance <= place_.view.end; ++n) {
    const float x = std::floor(place_.x(zero + n * distance));
    if (x < place_.low.x) continue;
    list_->AddLine({x, place_.axis_low() - px(4)}, {x, place_.high.y},
                   with_alpha(colours.line, 0.7F));
    const std::string text = tick_text(n * distance, distance);
    if (x + ImGui::CalcTextSize(text.c_str()).x < place_.high.x)
      list_->AddText({x + px(3), place_.low.y - place_.axis_height + px(2)}, colours.dim,
                     text.c_str());
  }
}

void TimelineRuler::draw_steps() {
  const std::vector<rundb::StepRow>& steps = pieces_.steps();
  const Colours& colours = look().colours;
  auto step = std::ranges::lower_bound(steps, place_.view.begin, {},
                                       [](const rundb::StepRow& s) { return s.ts + s.dur; });
  float free_from = place_.low.x;
  float line_before = place_.low.x - px(10);
  for (; step != steps.end() && step->ts <= place_.view.end; ++step) {
    const float x = std::floor(place_.x(step->ts));
    if (x >= place_.low.x && x >= line_before + px(5)) {  // closer lines would be a surface
      line_before = x;
      list_->AddLine({x, place_.axis_low()}, {x, place_.high.y}, with_alpha(colours.dim, 0.45F),
                     px(1));
    }
    // A step that began before has its number at the edge, so long as that ends before the step.
    const float left = std::max(x, place_.low.x);
    if (left < free_from) continue;
    const std::string text = "step " + step_text(step->id);
    const float end = left + tag_width(text);
    const bool is_cut = x < place_.low.x && end > place_.x(step->ts + step->dur);
    if (is_cut || end > place_.high.x) continue;
    draw_tag(list_, place_, {left, place_.axis_low() - px(15)}, text,
             with_alpha(colours.waiting, 1));
    free_from = end + px(2);
  }
}

void TimelineRuler::draw_changes(bool is_hovered) {
  std::vector<std::pair<float, const ChangeMark*>> visible;
  for (const ChangeMark& change : pieces_.facts().changes) {
    const std::optional<TimeNs> ts = begin_of(change, pieces_.steps());
    if (!ts || *ts < place_.view.begin || *ts > place_.view.end) continue;
    visible.emplace_back(std::floor(place_.x(*ts)), &change);
  }
  std::ranges::stable_sort(visible, {}, &std::pair<float, const ChangeMark*>::first);
  const ImU32 amber = look().colours.amber;
  std::vector<PlacedMark> marks;
  float line_before = -1;
  for (const auto& [x, change] : visible) {
    shown_.push_back(change);
    marks.push_back({x, change->text});
    if (x == line_before) continue;
    line_before = x;
    list_->AddLine({x, place_.axis_low() - px(2 * kLine - 1)}, {x, place_.high.y},
                   with_alpha(amber, 0.9F), px(1));
  }
  const float y = place_.axis_low() - px(2 * kLine - 1);
  const MarkSpace space{.left = place_.low.x, .right = place_.high.x, .gap = px(4)};
  for (const MarkLabel& label : place_mark_labels(marks, space, tag_width)) {
    draw_tag(list_, place_, {label.begin, y}, label.text, amber);
    const ImVec2 end = {label.begin + label.width, y + px(kLine)};
    if (is_hovered && ImGui::IsMouseHoveringRect({label.begin, y}, end))
      draw_change_tip(label.first, label.count);
  }
}

void TimelineRuler::draw_change_tip(std::size_t first, std::size_t count) const {
  if (!ImGui::BeginTooltip()) return;
  if (ImGui::BeginTable("##changes", 3, ImGuiTableFlags_SizingFixedFit)) {
    for (std::size_t i = first; i < first + count; ++i) {
      ImGui::TableNextRow();
      ImGui::TableNextColumn();
      ImGui::Text("from step %s", step_text(shown_[i]->step).c_str());
      ImGui::TableNextColumn();
      draw_coloured(look().colours.amber, shown_[i]->text, false);
      ImGui::TableNextColumn();
      draw_note(who_text(shown_[i]->who));
    }
    ImGui::EndTable();
  }
  ImGui::EndTooltip();
}

}  // namespace sluice::gui
