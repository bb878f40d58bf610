#pragma once
// The decision of a step: what its gradients are known to be once all of them are down, whether
// they are applied and by how much, and where the run stands afterwards. Pure functions, so a real
// step and a simulated one decide alike, and every rank of a run would.
//
// Thread contract: plain data and free functions.

#include <cstdint>
#include <vector>

#include "base/parameter_span.h"
#include "core/offload/offload_options.h"
#include "core/offload/step_decision.h"
#include "core/optimizer/loss_scale.h"
#include "core/optimizer/update_rule.h"
#include "storage/state/commit_record.h"

namespace sluice::session {

// The facts that are known once the gradients are.
struct GradientSummary {
  double norm = 0;  // of the gradients without loss scale
  bool finite = true;
};

// The subgroups below `end` that are in no group before it.
struct GroupUpdate {
  std::int32_t end = 0;
  optimizer::UpdateOptions update;
};

struct StepPlan {
  state::TrainingPosition position;  // before the step
  optimizer::UpdateOptions update;   // with the step's learning rate
  std::vector<GroupUpdate> groups;   // of all subgroups, where some have rates of their own
  double max_grad_norm = 0;          // 0: no clipping
  double gradient_factor = 1;        // on every gradient, beside clipping and loss scale
  ParameterKind precision = ParameterKind::bf16;
  optimizer::LossScaleOptions loss_scale;  // fp16
  int micro_step_count = 1;                // of a rank
  int rank_count = 1;
  std::int64_t sample_count = 0;  // of the text, over all micro-steps and ranks

  // Where gradients are not finite: fp16 has a loss scale to lower, the others have nothing
  // to try.
  bool can_skip() const { return precision == ParameterKind::fp16; }
  // The factor by which backward multiplies the loss.
  double gradient_scale() const { return position.loss_scale / (micro_step_count * rank_count); }
};

// Overflow skips the step. `remaining_loss_scale` is the loss scale still contained in the
// gradients on the drives.
offload::StepDecision decide(const StepPlan& plan, const GradientSummary& gradients,
                             double remaining_loss_scale);

// The decision of decide() where nothing is clipped and nothing overflows.
offload::StepDecision expected_decision(const StepPlan& plan, double remaining_loss_scale);

// The values by which a step may be updated before its decision.
offload::UpdateAhead update_ahead(const StepPlan& plan, offload::Overlap overlap,
                                  double remaining_loss_scale);

// The training position once the decision is carried out and committed.
state::TrainingPosition position_after(const StepPlan& plan, const GradientSummary& gradients);

}  // namespace sluice::session
