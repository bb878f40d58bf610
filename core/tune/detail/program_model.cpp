#include "core/tune/detail/program_model.h"

#include <algorithm>

#include "core/plan/run_plan.h"
#include "core/session/session_settings.h"
#include "core/session/tensor_table.h"

namespace sluice::tune {
namespace {

using stages::StageInfo;
using stages::StagePhase;

// What the session itself does with parameters is of a subgroup.
bool is_of_layer(const OperationTimes& operation) {
  return operation.layer != kNoLayer && operation.subgroup == kNoSubgroup;
}

// The program's own time, but for backward.
bool is_before_backward(const OperationTimes& operation, const StageInfo& stage) {
  if (stage.phase == StagePhase::forward || stage.cause == stages::StageCause::program) return true;
  return stage.phase == StagePhase::parameters && is_of_layer(operation);
}

// Backward, and the copy of its gradient, which has no rate of its own.
bool is_backward(const StageInfo& stage) {
  const bool is_of_program =
      stage.rate == stages::StageRate::layer || stage.rate == stages::StageRate::none;
  return stage.phase == StagePhase::backward && stage.kind == stages::StageKind::kernel &&
         is_of_program;
}

}  // namespace

std::int64_t RecordedModel::parameter_count() const {
  return is_of_program() ? tensors.parameter_count : shape.flat_layout().parameter_count;
}

// The program's accelerator, if it has one, is its own: its layers and batches cross no link that
// is recorded.
Result<plan::RunPlan> RecordedModel::plan(const settings::RunConfig& config,
                                          const platform::Platform& platform) const {
  if (!is_of_program()) return plan::plan_run(config, shape, platform);
  RETURN_IF_ERROR(session::check_goes_with_session(config));
  platform::Platform machine = platform;
  machine.accelerator_routes.clear();
  ASSIGN_OR_RETURN(plan::RunPlan plan, plan::plan_tensors(config, tensors, machine));
  plan.activations.layer_blocks.resize(tensors.layers.size());  // none of its leave by us
  for (std::size_t l = 0; l < costs.forward_ns.size(); ++l) {
    plan.layer_costs[l] = {costs.forward_ns[l], costs.backward_ns[l]};
  }
  return plan;
}

Result<RecordedModel> model_of_program(const std::string& tensors,
                                       const settings::RunConfig& config) {
  ASSIGN_OR_RETURN(const session::Session::Request request, session::parse_tensors(tensors));
  ASSIGN_OR_RETURN(const session::TensorTable table,
                   session::TensorTable::make(request, config.offload.subgroup_elements));
  RecordedModel model;
  model.shape.name = config.files.name;
  model.tensors = table.layout();
  return model;
}

Result<ProgramCosts> costs_of_program(const RecordedSteps& steps, std::int32_t layer_count) {
  const RecordedSteps middle = middle_half(steps);
  ProgramCosts costs;
  costs.forward_ns.resize(static_cast<std::size_t>(layer_count));
  costs.backward_ns.resize(static_cast<std::size_t>(layer_count));
  bool has_forward = false;
  for (const OperationTimes& operation : middle.operations) {
    const StageInfo& stage = stages::stage_info(operation.stage);
    const TimeNs dur_ns = operation.end_ns - operation.start_ns;
    if (is_before_backward(operation, stage)) {
      costs.forward_ns.back() += dur_ns;
      has_forward = has_forward || stage.phase == StagePhase::forward;
    } else if (is_backward(stage)) {
      const std::int32_t layer = std::clamp(index_of(operation.layer), 0, layer_count - 1);
      costs.backward_ns[static_cast<std::size_t>(layer)] += dur_ns;
    }
  }
  if (!has_forward) {
    return make_error(ErrorCode::config,
                      "the program did not record its forward and backward (Session::record), so "
                      "nobody knows how long it takes for them");
  }
  const std::int64_t step_count = std::max<std::int64_t>(1, std::ssize(middle.steps));
  for (TimeNs& cost_ns : costs.forward_ns) cost_ns /= step_count;
  for (TimeNs& cost_ns : costs.backward_ns) cost_ns /= step_count;
  return costs;
}

}  // namespace sluice::tune
