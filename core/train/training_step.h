#pragma once
// One training step, as the schedule runs it: a real one and a simulated one are the same text.
//
// Thread contract: the schedule's thread.

#include "core/runtime/runtime.h"
#include "core/session/step_decision.h"
#include "core/train/step_context.h"

namespace sluice::model {
class TextWriter;
}

namespace sluice::train {

// With nbuffer a step overlaps the previous step's update: until `parameters_up_ns` that update is
// the critical path, and forward follows behind. With serial and handover a step contains its own
// update, at its end.
struct StepOutcome {
  session::GradientSummary gradients;
  state::TrainingPosition position;  // after the step
  // Subgroups that were updated before the decision, and those of them that it refuted.
  std::int32_t ahead_count = 0;
  std::int32_t refuted_count = 0;
  std::int32_t clipped_count = 0;  // overlap=local: subgroups that were clipped by their own norm
  TimeNs start_ns = 0;
  TimeNs parameters_up_ns = 0;  // of the step before; start_ns if they were up
  TimeNs forward_end_ns = 0;
  TimeNs backward_end_ns = 0;  // gradients checked and on their drives
  TimeNs end_ns = 0;  // written, and committed if due; pipeline=nbuffer: the next step may begin

  TimeNs forward_ns() const { return forward_end_ns - parameters_up_ns; }
  TimeNs backward_ns() const { return backward_end_ns - forward_end_ns; }
  TimeNs update_ns() const { return parameters_up_ns - start_ns + end_ns - backward_end_ns; }
  TimeNs total_ns() const { return end_ns - start_ns; }
};

// A layer's forward or backward on the platform's compute engine, as simulated time has it: without
// work.
runtime::Operation layer_operation(const StepContext& context, stages::Stage stage, LayerId layer,
                                   TimeNs dur_ns);

// `outcome` is filled in as the step goes. After a failure nothing of the step is under way, and
// the last commit stands. ErrorCode::diverged: its gradients are not finite, and nothing of it was
// applied or will be committed; the outcome has its gradients and its times up to there.
runtime::Task<Status> training_step(StepContext& context, const session::StepPlan& plan,
                                    StepOutcome& outcome);

// Micro-batch 0 upwards through all layers, where its batch is one for validation, layer by layer:
// on a device, or where parameters come from the drives. TrainableModel::loss() says it afterwards.
runtime::Task<Status> validation_pass(StepContext& context);

// The text's next token, in host memory, with parameters that come layer by layer.
runtime::Task<Status> text_pass(StepContext& context, model::TextWriter& text);

}  // namespace sluice::train
