#include "core/optimizer/update_rule.h"

#include <cmath>

#include "base/check.h"

namespace sluice::optimizer {
namespace {

constexpr const char* kAdamWState[] = {"master_weights", "exp_avg", "exp_avg_sq"};
constexpr const char* kSgdState[] = {"master_weights", "momentum_buffer"};
constexpr const char* kAdaGradState[] = {"master_weights", "sum_sq"};

// In the order of RuleKind and of the alternatives of UpdateScalars.
constexpr RuleInfo kRules[] = {
    {.name = "adamw", .state_names = kAdamWState},
    {.name = "sgd", .state_names = kSgdState},
    {.name = "adagrad", .state_names = kAdaGradState},
};
static_assert(std::size(kRules) == std::variant_size_v<UpdateScalars>);
static_assert(std::size(kAdamWState) == kMaxStateArrays);

AdamWScalars adamw_scalars(const UpdateOptions& options, std::int64_t optimizer_step,
                           double grad_scale) {
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

SgdScalars sgd_scalars(const UpdateOptions& options, double grad_scale) {
  return SgdScalars{
      .grad_scale = static_cast<float>(grad_scale),
      .weight_decay = static_cast<float>(options.weight_decay),
      .momentum = static_cast<float>(options.momentum),
      .minus_lr = static_cast<float>(-options.lr),
  };
}

AdaGradScalars adagrad_scalars(const UpdateOptions& options, double grad_scale) {
  return AdaGradScalars{
      .grad_scale = static_cast<float>(grad_scale),
      .weight_decay = static_cast<float>(options.weight_decay),
      .minus_lr = static_cast<float>(-options.lr),
      .eps = static_cast<float>(options.eps),
  };
}

}  // namespace

const RuleInfo& rule_info(RuleKind rule) { return kRules[static_cast<std::size_t>(rule)]; }
const RuleInfo& rule_info(const UpdateScalars& scalars) { return kRules[scalars.index()]; }

UpdateOptions default_options(RuleKind rule) {
  switch (rule) {
    case RuleKind::adamw:
      break;
    case RuleKind::sgd:
      return {.rule = rule, .lr = 0.1, .weight_decay = 0};
    case RuleKind::adagrad:
      return {.rule = rule, .lr = 1e-2, .eps = 1e-10, .weight_decay = 0};
  }
  return {};
}

UpdateScalars update_scalars(const UpdateOptions& options, std::int64_t optimizer_step,
                             double grad_scale) {
  CHECK_GE(optimizer_step, 1);
  switch (options.rule) {
    case RuleKind::adamw:
      break;
    case RuleKind::sgd:
      return sgd_scalars(options, grad_scale);
    case RuleKind::adagrad:
      return adagrad_scalars(options, grad_scale);
  }
  return adamw_scalars(options, optimizer_step, grad_scale);
}

UpdateArrays slice(const UpdateArrays& arrays, std::int64_t first, std::int64_t count) {
  CHECK_GE(first, 0);
  CHECK_GE(count, 0);
  CHECK_LE(first, arrays.element_count - count);
  UpdateArrays part = arrays;
  part.element_count = count;
  for (float*& array : part.state) {
    if (array != nullptr) array += first;
  }
  if (arrays.gradient != nullptr) {
    part.gradient =
        static_cast<const std::byte*>(arrays.gradient) + first * bytes_of(arrays.gradient_kind);
  }
  if (arrays.parameters != nullptr) part.parameters += first;
  return part;
}

}  // namespace sluice::optimizer
