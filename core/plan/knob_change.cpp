#include "core/plan/knob_change.h"

#include <tuple>

#include "core/offload/base_cut.h"
#include "core/plan/drive_room.h"

namespace sluice::plan {
namespace {

Status check_record(const LivePlan& live, const settings::RunConfig& wanted) {
  if (live.is_recorded || wanted.record == live.run.config.record) return ok_status();
  return make_error(ErrorCode::config,
                    "record={}: this run began with record=off, so there is no database to record "
                    "into; begin with record=steps",
                    record::level_name(wanted.record));
}

}  // namespace

Result<PlannedKnobs> plan_knobs(const LivePlan& live, const settings::RunConfig& wanted) {
  RETURN_IF_ERROR(check_record(live, wanted));
  PlannedKnobs planned{live.run, {}, {}};
  RETURN_IF_ERROR(set_knobs(planned.run, wanted));
  RETURN_IF_ERROR(check_activations(planned.run, live.moves_activations));
  RETURN_IF_ERROR(check_device_memory(planned.run));
  planned.model = live.model_memory(planned.run);
  planned.memory = plan_memory(planned.run, planned.model, memory_cap(wanted));
  fill_state_cache(planned.run, planned.memory);
  RETURN_IF_ERROR(check_plan(planned.memory));
  if (!planned.model.accelerator.empty()) {
    RETURN_IF_ERROR(check_plan(plan_accelerator_memory(planned.run, planned.model)));
  }
  RETURN_IF_ERROR(check_drive_room(planned.run, live.state_files, &live.run));
  return planned;
}

bool moves_other_activations(const settings::RunConfig& from, const settings::RunConfig& to) {
  const auto kept = [](const settings::ArithmeticConfig& config) {
    return std::tuple(config.activations, config.activation_buffer_bytes,
                      config.activation_host_bytes);
  };
  return kept(from.arithmetic) != kept(to.arithmetic);
}

bool needs_new_offload(const RunPlan& from, const RunPlan& to) {
  offload::OffloadOptions with_prefetch_of_other = from.options;
  with_prefetch_of_other.prefetch = to.options.prefetch;
  const auto lanes = [](const RunPlan& plan) {
    return std::tuple(plan.config.storage.io_bytes, plan.config.storage.queue_depth);
  };
  const auto base_map = [](const RunPlan& plan) {
    return plan.base ? plan.base->device_map : state::DeviceMap();
  };
  return with_prefetch_of_other != to.options || from.device_map != to.device_map ||
         base_map(from) != base_map(to) || lanes(from) != lanes(to) ||
         moves_other_activations(from.config, to.config);
}

}  // namespace sluice::plan
