// The definition of AdamW, written to be read beside the formula in update_rule.h.

#include <cmath>

#include "base/check.h"
#include "core/optimizer/update_rule.h"

namespace sluice::optimizer {
namespace {

float gradient_at(const AdamWArrays& arrays, std::int64_t i) {
  switch (arrays.gradient_kind) {
    case GradientKind::fp32:
      return static_cast<const float*>(arrays.gradient)[i];
    case GradientKind::bf16:
      return float_from_bf16(static_cast<const std::uint16_t*>(arrays.gradient)[i]);
    case GradientKind::fp16:
      return float_from_fp16(static_cast<const std::uint16_t*>(arrays.gradient)[i]);
  }
  return 0;
}

}  // namespace

AdamWScalars adamw_scalars(const AdamWOptions& options, std::int64_t optimizer_step,
                           double grad_scale) {
  CHECK_GE(optimizer_step, 1);
  const auto step = static_cast<double>(optimizer_step);
  const double bias1 = 1 - std::pow(options.beta1, step);
  const double bias2 = 1 - std::pow(options.beta2, step);
  return AdamWScalars{
      .grad_scale = static_cast<float>(grad_scale),
      .beta1 = static_cast<float>(options.beta1),
      .one_minus_beta1 = static_cast<float>(1 - options.beta1),
      .beta2 = static_cast<float>(options.beta2),
      .one_minus_beta2 = static_cast<float>(1 - options.beta2),
      .decay = static_cast<float>(1 - options.lr * options.weight_decay),
      .minus_step_size = static_cast<float>(-options.lr / bias1),
      .inverse_sqrt_bias2 = static_cast<float>(1 / std::sqrt(bias2)),
      .eps = static_cast<float>(options.eps),
  };
}

void adamw_reference(const AdamWScalars& scalars, const AdamWArrays& arrays) {
  for (std::int64_t i = 0; i < arrays.element_count; ++i) {
    float& master_weight = arrays.master_weights[i];
    const float g = gradient_at(arrays, i) * scalars.grad_scale;
    const float m = std::fma(scalars.beta1, arrays.exp_avg[i], scalars.one_minus_beta1 * g);
    const float v =
        std::fma(scalars.beta2, arrays.exp_avg_sq[i], (scalars.one_minus_beta2 * g) * g);
    const float denominator = std::fma(std::sqrt(v), scalars.inverse_sqrt_bias2, scalars.eps);
    const float decayed = master_weight * scalars.decay;
    const float p = std::fma(scalars.minus_step_size, m / denominator, decayed);

    arrays.exp_avg[i] = stored_float(m);
    arrays.exp_avg_sq[i] = stored_float(v);
    master_weight = stored_float(p);
    if (arrays.parameters != nullptr)
      arrays.parameters[i] = float16_from_float(arrays.parameter_kind, master_weight);
  }
}

AdamWArrays slice(const AdamWArrays& arrays, std::int64_t first, std::int64_t count) {
  CHECK_GE(first, 0);
  CHECK_GE(count, 0);
  CHECK_LE(first, arrays.element_count - count);
  AdamWArrays part = arrays;
  part.element_count = count;
  part.master_weights += first;
  part.exp_avg += first;
  part.exp_avg_sq += first;
  if (arrays.gradient != nullptr) {
    part.gradient =
        static_cast<const std::byte*>(arrays.gradient) + first * bytes_of(arrays.gradient_kind);
  }
  if (arrays.parameters != nullptr) part.parameters += first;
  return part;
}

}  // namespace sluice::optimizer
