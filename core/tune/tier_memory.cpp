#include "core/tune/tier_memory.h"

#include <algorithm>
#include <limits>

#include "core/offload/offload_memory.h"
#include "core/offload/state_cache.h"
#include "core/plan/run_plan.h"

namespace sluice::tune {
namespace {

// 0 bytes: nobody has said one.
plan::MemoryCap host_cap(const plan::RunPlan& run, const MemoryModel& model) {
  const std::int64_t asked_bytes = run.config.resources.host_memory_bytes;
  const std::int64_t platform_bytes = run.platform.host_memory_bytes;
  plan::MemoryCap cap = model.host;
  if (asked_bytes > 0) {
    cap = {.size_bytes = asked_bytes};
  } else if (platform_bytes > 0) {
    cap = {platform_bytes, plan::MemoryCap::Source::machine, "the platform file"};
  }
  const bool is_less = model.host.size_bytes > 0 && model.host.size_bytes < cap.size_bytes;
  return model.is_here && is_less ? model.host : cap;
}

// The plan counts the memory of emulated devices as the host's, and that of cards as theirs.
plan::RunPlan as_planned(const plan::RunPlan& run, const MemoryModel& model) {
  plan::RunPlan planned = run;
  if (model.devices_have_own) planned.config.offload.backend = settings::Backend::xrt;
  return planned;
}

MemoryUse host_use(plan::RunPlan& run, const MemoryModel& model,
                   const plan::ModelMemory& computing) {
  plan::RunPlan planned = as_planned(run, model);
  const plan::MemoryCap cap = host_cap(run, model);
  plan::MemoryPlan memory = plan::plan_memory(planned, computing, cap);
  if (cap.size_bytes == 0) memory.cap_bytes = std::numeric_limits<std::int64_t>::max() / 2;
  if (run.config.offload.state_cache_bytes == settings::kAutomatic) {
    plan::fill_state_cache(planned, memory);
    run.options.state_cache_bytes = planned.options.state_cache_bytes;
    run.config.offload.state_cache_bytes = run.options.state_cache_bytes;
  }
  const bool is_limit = cap.size_bytes > 0 && cap.source != plan::MemoryCap::Source::host_memory &&
                        cap.what == model.host.what;
  const bool is_set = is_limit && cap.source == plan::MemoryCap::Source::set_limit;
  return {"host", is_set ? "limit" : "host_memory", memory.total_bytes, cap.size_bytes,
          is_limit ? cap.what : ""};
}

MemoryUse accelerator_use(const plan::RunPlan& run, const plan::ModelMemory& computing) {
  const plan::MemoryPlan memory = plan::plan_accelerator_memory(run, computing);
  return {"accelerator", "accelerator_memory", memory.total_bytes, memory.cap_bytes, ""};
}

MemoryUse device_use(const plan::RunPlan& run) {
  MemoryUse use{"device", "device_memory", 0, std::numeric_limits<std::int64_t>::max(), ""};
  const std::int64_t set_bytes =
      offload::plan_offload_memory(run.options, run.geometry, run.share.state).device_set_bytes;
  const offload::KeptSubgroups kept =
      offload::choose_kept(run.options, run.geometry, run.device_map);
  for (const DeviceId id : ids_of(kept)) {
    const std::int64_t kept_bytes =
        std::ssize(kept[id]) * offload::kept_subgroup_bytes(run.options, run.geometry);
    use.peak_bytes = std::max(use.peak_bytes, set_bytes + kept_bytes);
    use.cap_bytes = std::min(use.cap_bytes, run.device_budget_bytes(run.platform.device(id)));
  }
  return use;
}

}  // namespace

std::string limit_in_brackets(const MemoryUse& use) {
  return use.limit.empty() ? "" : fmt::format(" ({})", use.limit);
}

bool TierMemory::fits() const { return std::ranges::all_of(uses, &MemoryUse::fits); }

TierMemory tier_memory(plan::RunPlan& run, const MemoryModel& model) {
  const plan::ModelMemory computing = model.computing(run);
  TierMemory memory;
  memory.uses.push_back(host_use(run, model, computing));
  if (!computing.accelerator.empty()) {
    memory.of_activations = memory.uses.size();
    memory.uses.push_back(accelerator_use(run, computing));
  }
  if (run.options.method == offload::Method::csd) memory.uses.push_back(device_use(run));
  return memory;
}

}  // namespace sluice::tune
