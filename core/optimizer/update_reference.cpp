// The definition of each rule, written to be read beside the formulas in update_rule.h.

#include <cmath>

#include "base/float16.h"
#include "core/optimizer/update_rule.h"

namespace sluice::optimizer {
namespace {

float gradient_at(const UpdateArrays& arrays, std::int64_t i) {
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

void update_element(const AdamWScalars& scalars, const UpdateArrays& arrays, std::int64_t i) {
  const auto& [master_weights, exp_avg, exp_avg_sq] = arrays.state;
  const float g = gradient_at(arrays, i) * scalars.grad_scale;
  const float m = std::fma(scalars.beta1, exp_avg[i], scalars.one_minus_beta1 * g);
  const float v = std::fma(scalars.beta2, exp_avg_sq[i], (scalars.one_minus_beta2 * g) * g);
  const float denominator = std::fma(std::sqrt(v), scalars.inverse_sqrt_bias2, scalars.eps);
  const float decayed = master_weights[i] * scalars.decay;
  const float p = std::fma(scalars.minus_step_size, m / denominator, decayed);
  exp_avg[i] = stored_float(m);
  exp_avg_sq[i] = stored_float(v);
  master_weights[i] = stored_float(p);
}

void update_element(const SgdScalars& scalars, const UpdateArrays& arrays, std::int64_t i) {
  float& master_weight = arrays.state[0][i];
  float& momentum_buffer = arrays.state[1][i];
  const float g =
      std::fma(scalars.weight_decay, master_weight, gradient_at(arrays, i) * scalars.grad_scale);
  const float m = std::fma(scalars.momentum, momentum_buffer, g);
  const float p = std::fma(scalars.minus_lr, m, master_weight);
  momentum_buffer = stored_float(m);
  master_weight = stored_float(p);
}

void update_element(const AdaGradScalars& scalars, const UpdateArrays& arrays, std::int64_t i) {
  float& master_weight = arrays.state[0][i];
  float& sum_sq = arrays.state[1][i];
  const float g =
      std::fma(scalars.weight_decay, master_weight, gradient_at(arrays, i) * scalars.grad_scale);
  const float v = std::fma(g, g, sum_sq);
  const float p = std::fma(scalars.minus_lr, g / (std::sqrt(v) + scalars.eps), master_weight);
  sum_sq = stored_float(v);
  master_weight = stored_float(p);
}

}  // namespace

void update_reference(const UpdateScalars& scalars, const UpdateArrays& arrays) {
  const auto update_all = [&arrays](const auto& rule_scalars) {
    for (std::int64_t i = 0; i < arrays.element_count; ++i) {
      update_element(rule_scalars, arrays, i);
      if (arrays.parameters != nullptr)
        arrays.parameters[i] = float16_from_float(arrays.parameter_kind, arrays.state[0][i]);
    }
  };
  std::visit(update_all, scalars);
}

}  // namespace sluice::optimizer
