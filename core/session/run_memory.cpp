#include "core/session/run_memory.h"

#include "core/plan/run_plan.h"

namespace sluice::session {
namespace {

void keep_larger(plan::MemoryPlan& plan, plan::MemoryPlan other) {
  if (other.total_bytes > plan.total_bytes) plan = std::move(other);
}

// The densities of the warm-up take more than the one after it: the plan is that of the largest.
Status plan_for_density_warmup(const plan::RunPlan& run, const plan::MemoryCap& cap,
                               RunMemory& memory) {
  const settings::OffloadConfig& offload = run.config.offload;
  for (std::int64_t step = 0; step < offload.density_warmup_steps; ++step) {
    const double density =
        settings::density_at(step, offload.density, offload.density_warmup_steps);
    if (density == run.options.density) continue;
    plan::RunPlan stage = run;
    stage.options.density = density;
    RETURN_IF_ERROR(plan::check_device_memory(stage));
    keep_larger(memory.host, plan::plan_memory(stage, memory.model, cap));
    if (memory.accelerator) {
      keep_larger(*memory.accelerator, plan::plan_accelerator_memory(stage, memory.model));
    }
  }
  return ok_status();
}

}  // namespace

Result<RunMemory> plan_run_memory(plan::RunPlan& run,
                                  std::function<plan::ModelMemory(const plan::RunPlan&)> model_of) {
  RunMemory memory{.model_of = std::move(model_of)};
  memory.model = memory.model_of(run);
  const plan::MemoryCap cap = plan::memory_cap(run.config);
  memory.host = plan::plan_memory(run, memory.model, cap);
  if (!memory.model.accelerator.empty()) {
    memory.accelerator = plan::plan_accelerator_memory(run, memory.model);
  } else if (run.options.works_on_accelerator()) {
    return make_error(ErrorCode::config,
                      "gradient_work=accelerator, and device=cpu computes in host memory: set "
                      "device=cuda or soft, or leave the gradients' work to the host");
  }
  RETURN_IF_ERROR(plan_for_density_warmup(run, cap, memory));
  plan::fill_state_cache(run, memory.host);
  RETURN_IF_ERROR(plan::check_plan(memory.host));
  RETURN_IF_ERROR(plan::check_device_memory(run));
  if (memory.accelerator) RETURN_IF_ERROR(plan::check_plan(*memory.accelerator));
  return memory;
}

}  // namespace sluice::session
