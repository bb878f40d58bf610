#include "profiler/analyze/trend.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace sluice::analyze {
namespace {

constexpr double kMadToDeviation = 1.4826;
// The standard error of a median is this many of a mean's (sqrt(pi / 2)).
constexpr double kMedianError = 1.2533;
constexpr double kErrors = 3;
// A split is looked for at no more places than this, evenly chosen.
constexpr std::size_t kPlacesMax = 200;

struct Stretch {
  std::size_t begin;
  std::size_t end;
};

std::vector<double> slice(std::span<const double> values, Stretch stretch) {
  return {values.begin() + static_cast<std::ptrdiff_t>(stretch.begin),
          values.begin() + static_cast<std::ptrdiff_t>(stretch.end)};
}

double deviation_from_median(std::span<const double> values, Stretch stretch) {
  const std::vector<double> of = slice(values, stretch);
  const double median = median_of(of);
  double sum = 0;
  for (const double value : of) sum += std::abs(value - median);
  return sum;
}

// Where cutting the stretch in two takes away most of the deviation.
std::size_t best_cut(std::span<const double> values, Stretch stretch) {
  const std::size_t first = stretch.begin + kStretchSteps;
  const std::size_t last = stretch.end - kStretchSteps;
  const std::size_t stride = std::max<std::size_t>(1, (last - first) / kPlacesMax);
  const auto cost = [&](std::size_t cut) {
    return deviation_from_median(values, {stretch.begin, cut}) +
           deviation_from_median(values, {cut, stretch.end});
  };
  std::size_t best = first;
  double least = cost(first);
  const auto look_at = [&](std::size_t cut) {
    const double here = cost(cut);
    if (here < least) {
      least = here;
      best = cut;
    }
  };
  for (std::size_t cut = first; cut <= last; cut += stride) look_at(cut);
  const std::size_t around = best;
  for (std::size_t cut = std::max(first, around - std::min(around, stride));
       stride > 1 && cut <= std::min(last, around + stride); ++cut) {
    look_at(cut);
  }
  return best;
}

bool is_change(std::span<const double> values, Stretch before, Stretch after) {
  const double old_median = median_of(slice(values, before));
  const double new_median = median_of(slice(values, after));
  const double noise = std::max(noise_of(slice(values, before), old_median),
                                noise_of(slice(values, after), new_median));
  const double change = std::abs(new_median - old_median);
  return change > kChangeNoise * noise && change > kChangeShare * old_median;
}

void split(std::span<const double> values, Stretch stretch, std::vector<std::size_t>& cuts) {
  if (stretch.end - stretch.begin < 2 * kStretchSteps) return;
  const std::size_t cut = best_cut(values, stretch);
  if (!is_change(values, {stretch.begin, cut}, {cut, stretch.end})) return;
  split(values, {stretch.begin, cut}, cuts);
  cuts.push_back(cut);
  split(values, {cut, stretch.end}, cuts);
}

// Known ones that leave a stretch on each side; of two that are closer, the later.
std::vector<std::size_t> apart(std::span<const std::size_t> known, std::size_t value_count) {
  std::vector<std::size_t> cuts;
  for (const std::size_t cut : known) {
    if (cut < kStretchSteps || cut + kStretchSteps > value_count) continue;
    if (!cuts.empty() && cut < cuts.back() + kStretchSteps) cuts.pop_back();
    cuts.push_back(cut);
  }
  return cuts;
}

// A known cut may have changed nothing: what is left are those on whose two sides values differ.
void drop_idle(std::span<const double> values, std::vector<std::size_t>& cuts) {
  for (std::size_t i = 0; i < cuts.size();) {
    const std::size_t begin = i == 0 ? 0 : cuts[i - 1];
    const std::size_t end = i + 1 == cuts.size() ? values.size() : cuts[i + 1];
    if (is_change(values, {begin, cuts[i]}, {cuts[i], end})) {
      ++i;
    } else {
      cuts.erase(cuts.begin() + static_cast<std::ptrdiff_t>(i));
      i -= i > 0 ? 1 : 0;  // the one before it has another right side now
    }
  }
}

std::vector<std::size_t> find_cuts(std::span<const double> values,
                                   std::span<const std::size_t> known) {
  std::vector<std::size_t> cuts;
  std::size_t begin = 0;
  for (const std::size_t cut : apart(known, values.size())) {
    split(values, {begin, cut}, cuts);
    cuts.push_back(cut);
    begin = cut;
  }
  split(values, {begin, values.size()}, cuts);
  if (!known.empty()) drop_idle(values, cuts);
  return cuts;
}

std::vector<double> medians_between(std::span<const double> values,
                                    const std::vector<std::size_t>& cuts) {
  std::vector<double> medians;
  for (std::size_t s = 0; s <= cuts.size(); ++s) {
    const std::size_t begin = s == 0 ? 0 : cuts[s - 1];
    medians.push_back(median_of(slice(values, {begin, s < cuts.size() ? cuts[s] : values.size()})));
  }
  return medians;
}

// All places at which something was done are borders for whoever asks what stands out, also of a
// stretch too short to be told as a change: its steps have only each other to compare with.
std::vector<std::size_t> with_known(std::vector<std::size_t> cuts,
                                    std::span<const std::size_t> known, std::size_t value_count) {
  for (const std::size_t cut : known) {
    if (cut > 0 && cut < value_count) cuts.push_back(cut);
  }
  std::ranges::sort(cuts);
  cuts.erase(std::ranges::unique(cuts).begin(), cuts.end());
  return cuts;
}

void find_outliers(std::span<const double> values, const std::vector<std::size_t>& cuts,
                   Trend& trend) {
  const std::vector<double> medians = medians_between(values, cuts);
  const auto stretch_of = [&](std::size_t i) {
    return static_cast<std::size_t>(std::ranges::upper_bound(cuts, i) - cuts.begin());
  };
  std::vector<double> deviations;
  for (std::size_t i = 0; i < values.size(); ++i) {
    deviations.push_back(values[i] - medians[stretch_of(i)]);
  }
  trend.noise = noise_of(deviations, 0);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (deviations[i] > kOutlierNoise * trend.noise &&
        deviations[i] > kOutlierShare * medians[stretch_of(i)]) {
      trend.outliers.push_back(i);
    }
  }
}

}  // namespace

double median_of(std::vector<double> values) {
  CHECK(!values.empty());
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

double noise_of(std::span<const double> values, double median) {
  if (values.empty()) return 0;
  std::vector<double> deviations;
  for (const double value : values) deviations.push_back(std::abs(value - median));
  return kMadToDeviation * median_of(std::move(deviations));
}

double noise_of_difference(std::span<const double> a, std::span<const double> b) {
  const auto error = [](std::span<const double> values) {
    const double median = median_of({values.begin(), values.end()});
    return kMedianError * noise_of(values, median) / std::sqrt(static_cast<double>(values.size()));
  };
  return kErrors * std::hypot(error(a), error(b));
}

Trend trend_of(std::span<const double> values, std::span<const std::size_t> known) {
  Trend trend;
  if (values.empty()) return trend;
  trend.median = median_of({values.begin(), values.end()});
  const std::vector<std::size_t> cuts = find_cuts(values, known);
  const std::vector<double> medians = medians_between(values, cuts);
  for (std::size_t s = 0; s < cuts.size(); ++s) {
    trend.changes.push_back({cuts[s], medians[s], medians[s + 1]});
  }
  find_outliers(values, with_known(cuts, known, values.size()), trend);
  return trend;
}

}  // namespace sluice::analyze
