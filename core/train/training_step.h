#pragma once
// One training step, as the schedule runs it.
//
// Thread contract: the schedule's thread.

#include <functional>
#include <vector>

#include "core/model/trainable_model.h"
#include "core/offload/offload.h"
#include "core/plan/layer_cost.h"
#include "core/runtime/runtime.h"

namespace sluice::train {

struct StepContext {
  runtime::Runtime& runtime;
  const platform::Platform& platform;
  offload::Offload& offload;
  model::TrainableModel* model = nullptr;  // null: no payload
  const model::FlatLayout& layout;
  std::vector<plan::LayerCost> layer_costs;
  int micro_step_count = 1;
  // The layers' gradients leave the accelerators one after the other.
  runtime::Pool gradient_turn{runtime, 1};
};

// What is known once the gradients are: decides whether and how to update.
struct GradientSummary {
  double norm = 0;  // of the gradients without loss scale
  bool finite = true;
};

struct StepPlan {
  std::int32_t step = 0;
  double gradient_scale = 1;  // loss scale / micro-steps: what backward multiplies the loss by
  double loss_scale = 1;
  std::function<offload::StepDecision(const GradientSummary&)> decide;
  std::function<state::TrainingPosition(const GradientSummary&)> position_after;
};

// With pipeline=nbuffer a step begins while the one before it is being updated, and ends when its
// gradients are complete: from start to parameters_up it is that update which takes the time, and
// forward follows behind. With the others all of a step's update lies at its end.
struct StepOutcome {
  GradientSummary gradients;
  TimeNs start_ns = 0;
  TimeNs parameters_up_ns = 0;  // of the step before; start_ns if they were up
  TimeNs forward_end_ns = 0;
  TimeNs backward_end_ns = 0;  // gradients checked and on their drives
  TimeNs end_ns = 0;           // committed; pipeline=nbuffer: the next step may begin

  TimeNs forward_ns() const { return forward_end_ns - parameters_up_ns; }
  TimeNs backward_ns() const { return backward_end_ns - forward_end_ns; }
  TimeNs update_ns() const { return parameters_up_ns - start_ns + end_ns - backward_end_ns; }
  TimeNs total_ns() const { return end_ns - start_ns; }
};

runtime::Task<Status> training_step(StepContext& context, const StepPlan& plan,
                                    StepOutcome& outcome);

}  // namespace sluice::train
