#include "core/session/session_plan.h"

#include "core/plan/drive_room.h"
#include "core/plan/run_plan.h"
#include "core/session/run_memory.h"
#include "core/session/session_settings.h"
#include "core/session/simulated_update.h"
#include "core/session/tensor_table.h"

namespace sluice::session {
namespace {

// The library and those that it links take it, and the rows of its record as much again. Measured
// with sluice.AdamW, over 24 steps of 174 tensors: 5 and 7 MiB.
constexpr std::int64_t kProcessBytes = 8 << 20;

void add(SessionPlan& plan, const std::string& place, const std::string& what,
         std::int64_t size_bytes) {
  if (size_bytes > 0) plan.rows.push_back({place, what, size_bytes});
}

}  // namespace

Result<plan::RunPlan> run_plan_of(const Session::Request& request, TensorTable& tensors) {
  ASSIGN_OR_RETURN(settings::RunConfig config, config_of(request));
  RETURN_IF_ERROR(check_goes_with_session(config));
  ASSIGN_OR_RETURN(tensors, TensorTable::make(request, config.offload.subgroup_elements));
  config.offload.subgroup_elements = tensors.subgroup_elements();
  ASSIGN_OR_RETURN(const platform::Platform platform,
                   platform::load_platform(config.files.platform));
  return plan::plan_tensors(config, tensors.layout(), platform);
}

Result<RunMemory> memory_of(plan::RunPlan& plan, const TensorTable& tensors) {
  const bool is_recorded = plan.config.record != record::Level::off;
  const std::int64_t frozen_bytes = tensors.frozen_bytes(plan.options.parameter_kind);
  return plan_run_memory(plan, [=](const plan::RunPlan&) {
    plan::ModelMemory memory;
    memory.host.push_back(
        {"code, stacks and small objects", is_recorded ? 2 * kProcessBytes : kProcessBytes});
    if (frozen_bytes > 0) memory.host.push_back({"frozen tensors", frozen_bytes});
    return memory;
  });
}

Result<SessionPlan> plan_session(const Session::Request& request) {
  TensorTable tensors;
  ASSIGN_OR_RETURN(plan::RunPlan plan, run_plan_of(request, tensors));
  ASSIGN_OR_RETURN(const RunMemory memory, memory_of(plan, tensors));
  SessionPlan found{.host_memory_bytes = memory.host.total_bytes,
                    .host_memory_cap_bytes = memory.host.cap_bytes};
  for (const MemoryItem& item : memory.host.items) {
    add(found, "host memory", item.what, item.size_bytes);
  }
  const IdVector<DeviceId, plan::DriveNeed> drives = plan::drive_needs(plan);
  for (const DeviceId device : all_ids<DeviceId>(plan.geometry.device_count)) {
    const std::string place = fmt::format("drive {}", index_of(device));
    add(found, place, "state, two versions", drives[device].state_bytes);
    add(found, place, "gradients", drives[device].gradient_bytes);
    add(found, place, "parameters", drives[device].parameter_bytes);
  }
  RETURN_IF_ERROR(plan::check_capacity(plan));
  ASSIGN_OR_RETURN(found.update_seconds, simulated_update_seconds(plan));
  return found;
}

}  // namespace sluice::session
