#include "gui/views/phases_view.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/words.h"
#include "gui/data/span_scan.h"
#include "gui/data/verdict.h"
#include "gui/views/marks.h"
#include "gui/views/run_colours.h"
#include "gui/widgets/figures.h"
#include "gui/widgets/look.h"
#include "gui/widgets/panel.h"

namespace sluice::gui {
namespace {

constexpr std::size_t kBarsMax = 400;

struct PhaseUnit {
  const char* name;
  double ns;
};
PhaseUnit unit_of(const std::vector<PhaseRow>& phases) {
  TimeNs longest = 0;
  for (const PhaseRow& row : phases)
    longest = std::max(longest, row.dur_ns[0] + row.dur_ns[1] + row.dur_ns[2]);
  if (longest >= 1'000'000'000) return {"s", 1e9};
  return longest >= 1'000'000 ? PhaseUnit{"ms", 1e6} : PhaseUnit{"us", 1e3};
}

// Means of neighbouring steps where there are more than bars.
StackedBars bars_of(const std::vector<PhaseRow>& phases, double unit_ns) {
  const std::size_t count = std::min(kBarsMax, phases.size());
  StackedBars bars;
  bars.values.resize(analyze::kPhaseCount);
  for (const analyze::PhaseInfo& phase : analyze::kPhases)
    bars.colours.push_back(themed(phase.colour));
  for (std::size_t b = 0; b < count; ++b) {
    const std::size_t begin = phases.size() * b / count;
    const std::size_t end = phases.size() * (b + 1) / count;
    const auto middle = static_cast<double>(phases[begin].step + phases[end - 1].step) / 2;
    bars.steps.push_back(middle + 1);
    for (std::size_t p = 0; p < analyze::kPhaseCount; ++p) {
      double sum = 0;
      for (std::size_t i = begin; i < end; ++i) sum += static_cast<double>(phases[i].dur_ns[p]);
      bars.values[p].push_back(sum / static_cast<double>(end - begin) / unit_ns);
    }
  }
  const auto steps = static_cast<double>(phases.back().step - phases.front().step + 1);
  bars.bar_width = steps / static_cast<double>(count);
  return bars;
}

void draw_legend() {
  for (const analyze::PhaseInfo& phase : analyze::kPhases) {
    draw_dot(themed(phase.colour));
    ImGui::SameLine(0, px(5));
    draw_coloured(look().colours.dim, std::string(phase.name), false);
    ImGui::SameLine(0, px(14));
  }
  ImGui::NewLine();
}

void draw_tip(const StackedBars& bars, double number, const PhaseUnit& unit) {
  const auto at = std::ranges::find(bars.steps, number);
  if (at == bars.steps.end() || !ImGui::BeginTooltip()) return;
  const auto i = static_cast<std::size_t>(at - bars.steps.begin());
  ImGui::Text("step %s", grouped_text(static_cast<std::int64_t>(number)).c_str());
  double sum = 0;
  for (const std::vector<double>& values : bars.values) sum += values[i];
  if (ImGui::BeginTable("##tip", 2)) {
    for (std::size_t p = 0; p < analyze::kPhaseCount; ++p) {
      const double value = bars.values[p][i];
      draw_pair(std::string(analyze::kPhases[p].name).c_str(),
                fmt::format("{}  {}", time_text(static_cast<TimeNs>(value * unit.ns)),
                            percent_text(sum > 0 ? value / sum : 0, 1)));
    }
    ImGui::EndTable();
  }
  ImGui::EndTooltip();
}

}  // namespace

PhasesView::PhasesView(const RunPieces& pieces) : View(words::kPhases), pieces_(pieces) {}
const char* PhasesView::help() const { return "Forward, backward and update of every step"; }

void PhasesView::draw_content() {
  const SpanStatistics* statistics = pieces_.statistics.get();
  if (pieces_.verdict != nullptr && !pieces_.verdict->why_empty.empty()) {
    draw_title(words::kPhases);
    draw_empty(pieces_.verdict->why_empty);
    return;
  }
  if (statistics == nullptr || statistics->phases.empty()) {
    draw_title(words::kPhases);
    if (statistics == nullptr || statistics->seen_count < statistics->span_count) {
      draw_empty("The operations are being read\u2026");
    } else if (pieces_.steps().empty()) {
      draw_empty("No step has ended.");
    } else if (pieces_.facts().info.is_of_session()) {
      draw_empty(analyze::kNoPhasesOfSession);
    } else {
      draw_empty(
          "No step has all of its phases in the record: operations were not recorded, or only in "
          "part.");
    }
    return;
  }
  const PhaseUnit unit = unit_of(statistics->phases);
  draw_title(words::kPhases, fmt::format("{} a step", unit.name));
  draw_legend();
  const StackedBars bars = bars_of(statistics->phases, unit.ns);
  // A change shows between the last step without and the first with it.
  std::vector<StepMark> marks = marks_of(pieces_.facts());
  for (StepMark& mark : marks) mark.step -= 0.5;
  double number = 0;
  const StepAxis axis{bars.steps.front() - bars.bar_width / 2,
                      bars.steps.back() + bars.bar_width / 2};
  const float height = std::max(px(80), ImGui::GetContentRegionAvail().y);
  if (draw_step_bars({.id = "##phases", .size = {-1, height}, .axis = axis}, bars, marks, &number))
    draw_tip(bars, number, unit);
}

}  // namespace sluice::gui
