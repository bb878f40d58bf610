// Findings about steps beside one another.

#include "profiler/analyze/detail/detector.h"

namespace sluice::analyze::detail {
namespace {

constexpr std::size_t kFewestOutliers = 3;

// The distance of slow steps; 0: they come at no regular one.
std::size_t period_of(const std::vector<std::size_t>& outliers) {
  if (outliers.size() < kFewestOutliers) return 0;
  const std::size_t period = outliers[1] - outliers[0];
  for (std::size_t i = 1; i < outliers.size(); ++i) {
    if (outliers[i] - outliers[i - 1] != period) return 0;
  }
  return period >= 2 ? period : 0;
}

}  // namespace

Detected periodic_slow_steps(const Look& look) {
  if (look.steps.size() < kStretchSteps) return cannot("fewer than 5 steps");
  const std::size_t period = period_of(look.analysis.trend.outliers);
  if (period == 0) return nothing(fmt::format("{} steps", look.steps.size()));
  std::vector<double> durs;
  double sum = 0;
  for (const rundb::StepRow& step : look.steps) {
    durs.push_back(static_cast<double>(step.dur));
    sum += durs.back();
  }
  const double median = median_of(durs);
  double more = 0;
  PathTime path;
  for (const std::size_t i : look.analysis.trend.outliers) {
    more += durs[i] - median;
    path.add(static_cast<TimeNs>(durs[i] - median), -1, look.steps[i].id);
  }
  const auto count = static_cast<double>(look.analysis.trend.outliers.size());
  return found(path, more / sum,
               fmt::format("Every {} steps one takes {} more than the median of {}.", period,
                           format_duration(static_cast<TimeNs>(more / count)),
                           format_duration(static_cast<TimeNs>(median))),
               "Do what these steps do less often, or beside the training.");
}

Detected lasting_slowdown(const Look& look) {
  if (look.steps.size() < 2 * kStretchSteps) return cannot("fewer than 10 steps");
  if (look.analysis.trend.changes.empty())
    return nothing(fmt::format("{} steps", look.steps.size()));
  const ChangePoint& last = look.analysis.trend.changes.back();
  const std::int64_t from = look.analysis.change_steps.back();
  const bool is_asked_for =
      std::ranges::any_of(look.info.knob_changes, [from](const rundb::KnobChangeRow& change) {
        return std::abs(change.step_id - from) <= static_cast<std::int64_t>(kSettlingSteps);
      });
  if (is_asked_for) return nothing("a knob changed there");
  PathTime path;
  for (std::size_t i = last.index; i < look.steps.size(); ++i)
    path.add(look.steps[i].dur, -1, look.steps[i].id);
  return found(path, 1 - last.before / last.after,
               fmt::format("Since step {} a step takes {} instead of {}.", from + 1,
                           format_seconds(last.after), format_seconds(last.before)),
               "Look for what became slower then: heat, a full drive, another program.");
}

}  // namespace sluice::analyze::detail
