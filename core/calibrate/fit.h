#pragma once
// From measurements to what a platform file can say.
//
// Thread contract: free functions.

#include <span>
#include <string>
#include <vector>

#include "core/calibrate/figure.h"
#include "core/platform/platform.h"

namespace sluice::calibrate {

// Bytes a second of both directions under one load.
struct BothWays {
  double read = 0;
  double write = 0;
};

// The share of a drive's time that a load takes if the directions share it: 1 is what half duplex
// predicts for reading and writing at once, 2 is what full duplex predicts.
double share_of_time(const BothWays& alone, const BothWays& mixed);
// Whichever predicts the mixed load better.
platform::Duplex fit_duplex(const BothWays& alone, const BothWays& mixed);

// Whether drives that work at once reach less than they do one by one.
struct SharedLimit {
  double bytes_per_s = 0;  // the ceiling, or the sum of the drives where there is none
  bool is_found = false;
};
// Below this share of the sum a ceiling is taken to be real, and not the spread of the drives.
inline constexpr double kSharedBelow = 0.9;
SharedLimit fit_shared_limit(std::span<const double> alone, double together);

// So many bytes had come by so long after the first request.
struct Progress {
  double seconds = 0;
  double bytes = 0;
};
// Bytes a second: the slope of a line through all of it, by least squares. For completions that
// come in bunches any stretch between two of them is wrong by up to a bunch, and this hardly. At
// least two points at different times, else 0.
double fit_rate(std::span<const Progress> progress);
// How far progress is ahead of a drive that has its lasting rate from the beginning: the mean over
// the second half, since a throttle that hands out a slice's worth at a time is ahead at the
// beginning of each slice and not at its end. How fast it got there: by the way to the first nine
// tenths of that. No burst (0 bytes) where it is less than kBurstAheadSeconds of the rate, which
// may be chance.
inline constexpr double kBurstAheadSeconds = 0.015;
platform::Burst fit_burst(std::span<const Progress> progress, double bytes_per_s);

// Forward or backward of a part of a model: seconds = flop / matmul + elements / elementwise.
struct ComputeSample {
  std::string what;  // "gpt2-124m 1 x 256, forward of its blocks"
  double flop = 0;
  double elements = 0;
  double seconds = 0;
  double weight = 1;  // its share of the pass
};
struct ComputeRates {
  double matmul = 0;       // FLOP/s
  double elementwise = 0;  // elem/s; 0: the samples want none
  double worst_error = 0;  // largest |predicted / measured - 1| of a sample, times its weight

  double predict(const ComputeSample& sample) const;
};
// Least squares of the relative errors, each times its weight, neither rate negative. At least one
// sample with FLOP.
ComputeRates fit_compute(std::span<const ComputeSample> samples);

// One layer, when others went before it at once, and when nothing did for a while.
struct WakeSample {
  double seconds = 0;
  double after_idling_seconds = 0;
};
// Work of `seconds` takes `takes_seconds` after idling; 0: none was seen.
struct Wake {
  double seconds = 0;
  double takes_seconds = 0;
};
// The layer that loses most, in proportion, says how slow the beginning is, the one that loses most
// time how much there is to lose. Below kWakeLostSeconds it may be chance.
inline constexpr double kWakeLostSeconds = 2e-3;
Wake fit_wake(std::span<const WakeSample> samples);

// The same computation, alone and beside transfers of so many bytes a second.
struct TollSample {
  double alone_seconds = 0;
  double beside_seconds = 0;
  double bytes_per_s = 0;
};
// The share of the processor's time that transfers take.
struct Toll {
  Figure longer;                     // computing takes longer beside them by this share of it
  double bytes_per_s = 0;            // of those transfers
  double processor_bytes_per_s = 0;  // so many would take all of its time; 0: none was seen
};
// By medians. None was seen where the middle one is not longer by more than twice the standard
// error of the mean, which may be chance. At least one sample.
Toll fit_toll(std::span<const TollSample> samples);

}  // namespace sluice::calibrate
