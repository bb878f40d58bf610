#include "core/plan/knob_change.h"

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

}  // namespace sluice::plan
