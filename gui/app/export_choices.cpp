#include "gui/app/export_choices.h"

#include <fmt/format.h>

#include "gui/views/timeline_state.h"
#include "storage/rundb/rows.h"

namespace sluice::gui {
namespace {

ExportSteps steps_touched(const std::vector<rundb::StepRow>& steps, const TimeRange& range) {
  ExportSteps touched;
  for (const rundb::StepRow& step : steps) {
    if (step.ts >= range.end || step.ts + step.dur <= range.begin) continue;
    if (touched.first == 0) touched.first = step.id + 1;
    touched.last = step.id + 1;
  }
  return touched;
}

std::string steps_text(const ExportSteps& steps) {
  if (steps.first == steps.last) return fmt::format("step {}", steps.first);
  return fmt::format("steps {} to {}", steps.first, steps.last);
}

}  // namespace

std::vector<ExportChoice> export_choices(const std::vector<rundb::StepRow>& steps,
                                         const TimelineState& timeline) {
  std::vector<ExportChoice> choices;
  const auto add = [&](const char* name, const TimeRange& range) {
    const ExportSteps touched = steps_touched(steps, range);
    const bool is_all = touched.is_whole_run() || (touched.first == steps.front().id + 1 &&
                                                   touched.last == steps.back().id + 1);
    if (!is_all) choices.push_back({fmt::format("{}: {}", name, steps_text(touched)), touched});
  };
  if (timeline.measure.range()) add("Measured range", *timeline.measure.range());
  add("Visible range", timeline.view.range());
  choices.push_back(
      {fmt::format("Whole run: {} step{}", steps.size(), steps.size() == 1 ? "" : "s"),
       ExportSteps{}});
  return choices;
}

}  // namespace sluice::gui
