#include "core/replay/wakes.h"

#include <algorithm>
#include <cmath>

namespace sluice::replay {
namespace {

constexpr std::size_t kPausesMin = 4;
constexpr double kDiffers = 0.05;  // of the median pause: below it pauses are all alike
constexpr double kSteady = 0.25;   // of the scatter of the pauses

double median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

// The median distance from the median, which a few that stand out do not change.
double scatter(std::vector<double> values) {
  const double centre = median(values);
  for (double& value : values) value = std::abs(value - centre);
  return median(values);
}

}  // namespace

std::vector<bool> are_wakes(std::span<const Pause> pauses) {
  std::int32_t kinds = 0;
  for (const Pause& pause : pauses) kinds = std::max(kinds, pause.kind + 1);
  std::vector<std::vector<double>> durs(static_cast<std::size_t>(kinds));
  std::vector<std::vector<double>> afters(static_cast<std::size_t>(kinds));
  for (const Pause& pause : pauses) {
    durs[static_cast<std::size_t>(pause.kind)].push_back(static_cast<double>(pause.dur_ns));
    afters[static_cast<std::size_t>(pause.kind)].push_back(static_cast<double>(pause.after_ns));
  }
  std::vector<bool> wakes;
  for (std::size_t kind = 0; kind < durs.size(); ++kind) {
    if (durs[kind].size() < kPausesMin) {
      wakes.push_back(false);
      continue;
    }
    const double of_pauses = scatter(durs[kind]);
    wakes.push_back(of_pauses > kDiffers * median(durs[kind]) &&
                    scatter(afters[kind]) <= kSteady * of_pauses);
  }
  return wakes;
}

}  // namespace sluice::replay
