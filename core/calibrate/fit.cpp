#include "core/calibrate/fit.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"

namespace sluice::calibrate {

double share_of_time(const BothWays& alone, const BothWays& mixed) {
  CHECK_GT(alone.read, 0.0);
  CHECK_GT(alone.write, 0.0);
  return mixed.read / alone.read + mixed.write / alone.write;
}

platform::Duplex fit_duplex(const BothWays& alone, const BothWays& mixed) {
  return share_of_time(alone, mixed) >= 1.5 ? platform::Duplex::full : platform::Duplex::half;
}

SharedLimit fit_shared_limit(std::span<const double> alone, double together) {
  const double sum = std::accumulate(alone.begin(), alone.end(), 0.0);
  if (together >= kSharedBelow * sum) return {std::max(sum, together), false};
  return {together, true};
}

double ComputeRates::predict(const ComputeSample& sample) const {
  return sample.flop / matmul + (elementwise > 0 ? sample.elements / elementwise : 0);
}

ComputeRates fit_compute(std::span<const ComputeSample> samples) {
  // Each sample divided by its seconds: a x + b y = 1, with x and y seconds per FLOP and element.
  double aa = 0, ab = 0, bb = 0, a1 = 0, b1 = 0;
  for (const ComputeSample& sample : samples) {
    const double a = sample.flop / sample.seconds;
    const double b = sample.elements / sample.seconds;
    aa += a * a;
    ab += a * b;
    bb += b * b;
    a1 += a;
    b1 += b;
  }
  CHECK_GT(aa, 0.0);
  const double determinant = aa * bb - ab * ab;
  double x = a1 / aa;
  double y = 0;
  if (determinant > 1e-9 * aa * bb) {
    const double both_x = (a1 * bb - b1 * ab) / determinant;
    const double both_y = (b1 * aa - a1 * ab) / determinant;
    if (both_x > 0 && both_y > 0) {
      x = both_x;
      y = both_y;
    }
  }
  ComputeRates rates{1 / x, y > 0 ? 1 / y : 0, 0};
  for (const ComputeSample& sample : samples) {
    rates.worst_error =
        std::max(rates.worst_error, std::abs(rates.predict(sample) / sample.seconds - 1));
  }
  return rates;
}

}  // namespace sluice::calibrate
