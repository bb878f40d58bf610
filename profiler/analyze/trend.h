#pragma once
// Step times over a run: how much they scatter, where they changed for good, which stand out.
//
// Medians and their absolute deviations, since one stalled step must not hide the others (Rousseeuw
// and Croux, Alternatives to the Median Absolute Deviation, 1993: 1.4826 x MAD estimates the
// standard deviation of normal noise).
//
// Thread contract: free functions.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sluice::analyze {

// The first steps of a run, and those after a change of a knob, take memory and fill buffers: where
// there are others, they do not count.
inline constexpr std::size_t kSettlingSteps = 2;

double median_of(std::vector<double> values);  // of at least one
// 1.4826 x the median of absolute deviations from the median.
double noise_of(std::span<const double> values, double median);
// The noise of the difference of two medians: three standard errors of both. What is smaller may be
// chance.
double noise_of_difference(std::span<const double> a, std::span<const double> b);

struct ChangePoint {
  std::size_t index = 0;  // of the first value after it
  double before = 0;      // medians of the stretches that meet here
  double after = 0;
};

struct Trend {
  double median = 0;
  double noise = 0;                   // of the stretches around their own medians
  std::vector<ChangePoint> changes;   // in order
  std::vector<std::size_t> outliers;  // indices, in order: far above those with the same settings
};

// A change lasts at least kStretchSteps, and is larger than kChangeNoise times the noise and than
// kChangeShare; an outlier stands kOutlierNoise times the noise and kOutlierShare above its
// stretch.
inline constexpr std::size_t kStretchSteps = 5;
inline constexpr double kChangeNoise = 3;
inline constexpr double kChangeShare = 0.03;
inline constexpr double kOutlierNoise = 6;
inline constexpr double kOutlierShare = 0.2;

// The trend of any number of values; fewer than two stretches have no change. `known` are indices
// at which something was done that may have changed them (in order; of those closer than
// kStretchSteps the last counts): a bump that ends about where it began is found by its ends alone,
// since one cut of all values at either of them gains nothing. What stands out is asked between
// every two of them, however close: a bump of a few steps between two changes is no row of slow
// steps.
Trend trend_of(std::span<const double> values, std::span<const std::size_t> known = {});

}  // namespace sluice::analyze
