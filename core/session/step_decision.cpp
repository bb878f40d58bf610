#include "core/session/step_decision.h"

namespace sluice::session {

offload::StepDecision decide(const StepPlan& plan, const GradientSummary& gradients,
                             double remaining_loss_scale) {
  const double grad_scale =
      plan.gradient_factor *
      optimizer::grad_scale(remaining_loss_scale, gradients.norm, plan.max_grad_norm);
  const auto scalars = [&](const optimizer::UpdateOptions& update) {
    return optimizer::update_scalars(update, plan.position.optimizer_step + 1, grad_scale);
  };
  offload::StepDecision decision{.apply = gradients.finite, .scalars = scalars(plan.update)};
  for (const GroupUpdate& group : plan.groups) {
    decision.groups.push_back({group.end, scalars(group.update)});
  }
  return decision;
}

offload::StepDecision expected_decision(const StepPlan& plan, double remaining_loss_scale) {
  return decide(plan, {.norm = 0, .finite = true}, remaining_loss_scale);
}

offload::UpdateAhead update_ahead(const StepPlan& plan, offload::Overlap overlap,
                                  double remaining_loss_scale) {
  offload::UpdateAhead ahead;
  const std::int64_t optimizer_step = plan.position.optimizer_step + 1;
  ahead.rounding = CodeRounding::of_step(plan.position.seed, optimizer_step);
  switch (overlap) {
    case offload::Overlap::off:
      break;
    case offload::Overlap::exact:
      ahead.expected = expected_decision(plan, remaining_loss_scale);
      break;
    case offload::Overlap::local:
      ahead.clip = offload::ClipRule{.update = plan.update,
                                     .optimizer_step = optimizer_step,
                                     .loss_scale = plan.position.loss_scale,
                                     .remaining_loss_scale = remaining_loss_scale,
                                     .max_grad_norm = plan.max_grad_norm};
  }
  return ahead;
}

state::TrainingPosition position_after(const StepPlan& plan, const GradientSummary& gradients) {
  state::TrainingPosition next = plan.position;
  next.step += 1;
  next.optimizer_step += gradients.finite ? 1 : 0;
  next.data_position += static_cast<std::uint64_t>(plan.sample_count);
  if (plan.precision == ParameterKind::fp16) {
    const optimizer::LossScale scale = optimizer::next_loss_scale(
        {next.loss_scale, next.loss_scale_good_steps}, !gradients.finite, plan.loss_scale);
    next.loss_scale = scale.scale;
    next.loss_scale_good_steps = scale.good_steps;
  }
  return next;
}

}  // namespace sluice::session
