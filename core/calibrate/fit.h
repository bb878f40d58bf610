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

// Of a drive's time, how much a load takes if the directions share it: 1 is what half duplex
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

// Forward or backward of a model, or a part of it: seconds = flop / matmul + elements /
// elementwise.
struct ComputeSample {
  std::string what;  // "gpt2-124m 1 x 256, forward"
  double flop = 0;
  double elements = 0;
  double seconds = 0;
};
struct ComputeRates {
  double matmul = 0;       // FLOP/s
  double elementwise = 0;  // elem/s; 0: the samples want none
  double worst_error = 0;  // largest |predicted / measured - 1| of a sample

  double predict(const ComputeSample& sample) const;
};
// Least squares of the relative errors, neither rate negative. At least one sample with FLOP.
ComputeRates fit_compute(std::span<const ComputeSample> samples);

}  // namespace sluice::calibrate
