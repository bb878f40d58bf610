#include "core/plan/memory_plan.h"

#include <fstream>
#include <string_view>

#include "core/offload/offload_memory.h"

namespace sluice::plan {
namespace {

// The value in bytes of a "Name:   123 kB" line of a procfs file; 0 if there is none.
std::int64_t procfs_kilobytes(const char* path, std::string_view name) {
  std::ifstream file(path);
  std::string word;
  std::int64_t value = 0;
  while (file >> word) {
    if (word == name && file >> value) return value * 1024;
  }
  return 0;
}

// Rings of the recorder, the collector's batches and SQLite's cache; bounded in profiler/collect.
constexpr std::int64_t kRecordingBytes = 24 << 20;

}  // namespace

std::int64_t available_memory_bytes() { return procfs_kilobytes("/proc/meminfo", "MemAvailable:"); }
std::int64_t peak_resident_memory_bytes() {
  return procfs_kilobytes("/proc/self/status", "VmHWM:");
}

MemoryPlan plan_memory(const RunPlan& run, const model::ModelMemory& model) {
  const offload::OffloadMemoryPlan memory =
      offload::plan_offload_memory(run.options, run.geometry, run.layout);
  const std::int32_t device_count = run.geometry.device_count;
  MemoryPlan plan;
  const auto add = [&plan](std::string what, std::int64_t size_bytes) {
    if (size_bytes == 0) return;
    plan.items.push_back({std::move(what), size_bytes});
    plan.total_bytes += size_bytes;
  };
  add("program and libraries", model.library_bytes);
  add("16-bit parameters", run.layout.parameter_count * 2);
  add("activations", model.activation_bytes);
  add("temporaries of the widest layer", model.temporary_bytes);
  add("gradient of the tied table", model.tied_gradient_bytes);
  add(fmt::format("gradients of {} layers", offload::kLayerGradientCount),
      memory.layer_gradient_bytes);
  add("bounce buffers", memory.bounce_bytes);
  add("gradients of all layers (gradient_tier=memory)", memory.gradient_store_bytes);
  add("compression (density)", memory.compress_bytes);
  add("residual (error_feedback)", memory.residual_bytes);
  add(fmt::format("{} buffer sets a device, {} devices", run.options.set_count(), device_count),
      memory.host_set_bytes);
  add(fmt::format("memory of {} emulated devices, {} buffer sets each", device_count,
                  run.options.set_count()),
      memory.device_set_bytes * device_count);
  add("recording", kRecordingBytes);
  const std::int64_t asked_bytes = run.config.resources.host_memory_bytes;
  plan.cap_bytes = asked_bytes > 0 ? asked_bytes : available_memory_bytes();
  return plan;
}

Status check_plan(const MemoryPlan& plan) {
  if (plan.total_bytes <= plan.cap_bytes) return ok_status();
  return make_error(
      ErrorCode::memory,
      "the memory plan needs {} and the cap is {}: the smallest host_memory that would "
      "do is {} B. Lower buffers, subgroup_elements or batch, or set "
      "activations=recompute\n{}",
      format_bytes(plan.total_bytes), format_bytes(plan.cap_bytes), plan.total_bytes,
      describe(plan));
}

Result<ChangedPlan> plan_change(const ChangedPlan& current, const model::ModelMemory& model,
                                const settings::RunConfig& config) {
  ChangedPlan changed = current;
  RETURN_IF_ERROR(plan_knobs(changed.run, config));
  RETURN_IF_ERROR(check_device_memory(changed.run));
  changed.memory = plan_memory(changed.run, model);
  // What is available does not count what the run itself has taken.
  if (config.resources.host_memory_bytes == 0) {
    changed.memory.cap_bytes += current.memory.total_bytes;
  }
  RETURN_IF_ERROR(check_plan(changed.memory));
  return changed;
}

std::string describe(const MemoryPlan& plan) {
  std::string text = "Memory plan:\n";
  for (const MemoryItem& item : plan.items) {
    text += fmt::format("  {:<52} {:>9}\n", item.what, format_bytes(item.size_bytes));
  }
  text += fmt::format("  {:<52} {:>9}  of {}\n", "total", format_bytes(plan.total_bytes),
                      format_bytes(plan.cap_bytes));
  return text;
}

void record_memory(runtime::RecordingSink& recording, const RunPlan& run,
                   const offload::UpdateSites& sites, TimeNs now_ns) {
  std::vector<std::int64_t> device_bytes;
  for (const auto& site : sites) device_bytes.push_back(site->device_memory_used_bytes());
  recording.record_memory(
      offload::plan_offload_memory(run.options, run.geometry, run.layout).host_bytes(),
      device_bytes, now_ns);
}

}  // namespace sluice::plan
