#include "profiler/report/detail/step_pairs.h"

#include <algorithm>
#include <cmath>

#include "profiler/analyze/trend.h"

namespace sluice::report::detail {
namespace {

// Without the steps in which a run settles, where there are others.
std::vector<rundb::StepRow> settled(const std::vector<rundb::StepRow>& steps) {
  const std::size_t first = steps.size() > analyze::kSettlingSteps ? analyze::kSettlingSteps : 0;
  return {steps.begin() + static_cast<std::ptrdiff_t>(first), steps.end()};
}

double median_dur(const std::vector<rundb::StepRow>& steps) {
  std::vector<double> durs;
  for (const rundb::StepRow& step : steps) durs.push_back(static_cast<double>(step.dur));
  return std::max(1.0, analyze::median_of(durs));
}

double distance(const rundb::StepRow& step, double median) {
  return std::abs(static_cast<double>(step.dur) / median - 1);
}

const rundb::StepRow& nearest(const std::vector<rundb::StepRow>& steps, double median) {
  return *std::ranges::min_element(
      steps, {}, [&](const rundb::StepRow& step) { return distance(step, median); });
}

std::vector<StepPair> common_steps(const std::vector<rundb::StepRow>& a,
                                   const std::vector<rundb::StepRow>& b) {
  std::vector<StepPair> common;
  for (const rundb::StepRow& step : a) {
    const auto other = std::ranges::find(b, step.id, &rundb::StepRow::id);
    if (other != b.end()) common.push_back({step, *other, ""});
  }
  return common;
}

}  // namespace

std::vector<StepPair> paired_steps(const std::vector<rundb::StepRow>& of_a,
                                   const std::vector<rundb::StepRow>& of_b) {
  if (of_a.empty() || of_b.empty()) return {};
  const std::vector<rundb::StepRow> a = settled(of_a);
  const std::vector<rundb::StepRow> b = settled(of_b);
  const double median_a = median_dur(a);
  const double median_b = median_dur(b);
  const std::vector<StepPair> common = common_steps(a, b);
  if (common.empty()) {
    return {{nearest(a, median_a), nearest(b, median_b), "the median step of each"}};
  }
  const auto best = std::ranges::min_element(common, {}, [&](const StepPair& pair) {
    return distance(pair.a, median_a) + distance(pair.b, median_b);
  });
  std::vector<StepPair> pairs;
  if (best != common.begin()) pairs.push_back({(best - 1)->a, (best - 1)->b, "before that"});
  pairs.push_back({best->a, best->b, "nearest to both medians"});
  if (best + 1 != common.end()) pairs.push_back({(best + 1)->a, (best + 1)->b, "behind that"});
  return pairs;
}

}  // namespace sluice::report::detail
