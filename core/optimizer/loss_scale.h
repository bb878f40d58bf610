#pragma once
// Dynamic loss scale for fp16, with torch.cuda.amp.GradScaler's rules and defaults: on overflow
// scale *= backoff and the step is skipped; after growth_interval good steps in a row scale *=
// growth, unless that overflows. The scale is always an fp32 value, as torch's. Unlike torch's it
// has a smallest value, below which backing off helps nobody. bf16 runs keep a scale of 1 and never
// ask for the next.
//
// Thread contract: plain data and free functions.

#include <cstdint>

namespace sluice::optimizer {

struct LossScaleOptions {
  double initial = 65536.0;
  double growth_factor = 2.0;
  double backoff_factor = 0.5;
  std::int64_t growth_interval = 2000;
  double smallest = 1.0;
};

struct LossScale {
  double scale = 1;
  std::int64_t good_steps = 0;
};

LossScale next_loss_scale(const LossScale& current, bool overflow, const LossScaleOptions& options);

// An overflow does not make it smaller.
bool is_smallest(double scale, const LossScaleOptions& options);

// grad_scale = unscale x clip factor: (1 / scale) * min(1, max_norm / (norm + 1e-6)), as torch's
// clip_grad_norm_; `norm` is of the unscaled gradients. max_norm <= 0 means no clipping. A NaN norm
// gives NaN.
double grad_scale(double loss_scale, double norm, double max_norm);

}  // namespace sluice::optimizer
