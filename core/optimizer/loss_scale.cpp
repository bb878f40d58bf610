#include "core/optimizer/loss_scale.h"

#include <algorithm>
#include <cmath>

namespace sluice::optimizer {

LossScale next_loss_scale(const LossScale& current, bool overflow,
                          const LossScaleOptions& options) {
  if (overflow) {
    const auto smaller = static_cast<float>(current.scale * options.backoff_factor);
    // A state may have been left with a scale below today's smallest.
    const auto smallest = static_cast<float>(std::min(options.smallest, current.scale));
    return {.scale = std::max(smaller, smallest), .good_steps = 0};
  }
  if (current.good_steps + 1 < options.growth_interval)
    return {.scale = current.scale, .good_steps = current.good_steps + 1};
  const auto larger = static_cast<float>(current.scale * options.growth_factor);
  return {.scale = std::isfinite(larger) ? larger : current.scale, .good_steps = 0};
}

bool is_smallest(double scale, const LossScaleOptions& options) {
  return scale <= static_cast<float>(options.smallest);
}

double grad_scale(double loss_scale, double norm, double max_norm) {
  const double unscale = 1 / loss_scale;
  if (max_norm <= 0) return unscale;
  const double clip = max_norm / (norm + 1e-6);
  return clip >= 1 ? unscale : unscale * clip;  // NaN stays NaN
}

}  // namespace sluice::optimizer
