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

double fit_rate(std::span<const Progress> progress) {
  const auto count = static_cast<double>(progress.size());
  double seconds = 0, bytes = 0;
  for (const Progress& point : progress) {
    seconds += point.seconds / count;
    bytes += point.bytes / count;
  }
  double covariance = 0, variance = 0;
  for (const Progress& point : progress) {
    covariance += (point.seconds - seconds) * (point.bytes - bytes);
    variance += (point.seconds - seconds) * (point.seconds - seconds);
  }
  return variance > 0 ? covariance / variance : 0;
}

platform::Burst fit_burst(std::span<const Progress> progress, double bytes_per_s) {
  if (progress.empty()) return {};
  const auto ahead = [&](const Progress& at) { return at.bytes - bytes_per_s * at.seconds; };
  const double half_seconds = progress.back().seconds / 2;
  double sum = 0;
  for (std::size_t i = 0; i + 1 < progress.size(); ++i) {
    if (progress[i].seconds < half_seconds) continue;
    // Until the next bytes come, time goes by without them.
    const double dur = progress[i + 1].seconds - progress[i].seconds;
    sum += (ahead(progress[i]) - bytes_per_s * dur / 2) * dur;
  }
  const double ahead_bytes = sum / half_seconds;
  if (ahead_bytes < kBurstAheadSeconds * bytes_per_s) return {};
  const auto there = std::ranges::find_if(
      progress, [&](const Progress& at) { return ahead(at) >= 0.9 * ahead_bytes; });
  const double burst_bytes_per_s = there->bytes / there->seconds;
  const double size_bytes = ahead_bytes / (1 - bytes_per_s / burst_bytes_per_s);
  return {static_cast<std::int64_t>(size_bytes), burst_bytes_per_s};
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
    aa += sample.weight * a * a;
    ab += sample.weight * a * b;
    bb += sample.weight * b * b;
    a1 += sample.weight * a;
    b1 += sample.weight * b;
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
    const double error = std::abs(rates.predict(sample) / sample.seconds - 1);
    rates.worst_error = std::max(rates.worst_error, sample.weight * error);
  }
  return rates;
}

Wake fit_wake(std::span<const WakeSample> samples) {
  double most_lost_seconds = 0;
  double most_lost_share = 0;
  for (const WakeSample& sample : samples) {
    const double lost_seconds = sample.after_idling_seconds - sample.seconds;
    most_lost_seconds = std::max(most_lost_seconds, lost_seconds);
    most_lost_share = std::max(most_lost_share, lost_seconds / sample.seconds);
  }
  if (most_lost_seconds < kWakeLostSeconds) return {};
  const double seconds = most_lost_seconds / most_lost_share;
  return {seconds, seconds + most_lost_seconds};
}

Toll fit_toll(std::span<const TollSample> samples) {
  std::vector<double> longer, rates;
  double sum = 0, squares = 0;
  for (const TollSample& sample : samples) {
    longer.push_back(sample.beside_seconds / sample.alone_seconds - 1);
    rates.push_back(sample.bytes_per_s);
    sum += longer.back();
    squares += longer.back() * longer.back();
  }
  const auto count = static_cast<double>(samples.size());
  const double variance = std::max(0.0, squares / count - sum / count * (sum / count));
  Toll toll{figure_of(std::move(longer)), figure_of(std::move(rates)).value, 0};
  const double share = toll.longer.value;
  if (share <= 2 * std::sqrt(variance / count)) return toll;
  // The rest of the processor is 1 / (1 + share).
  toll.processor_bytes_per_s = toll.bytes_per_s * (1 + share) / share;
  return toll;
}

}  // namespace sluice::calibrate
