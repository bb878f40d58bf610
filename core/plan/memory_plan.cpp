#include "core/plan/memory_plan.h"

#include <fstream>
#include <string_view>

#include "base/figure_text.h"
#include "core/offload/accelerator_work.h"
#include "core/offload/offload_memory.h"
#include "core/plan/model_options.h"

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

void add(MemoryPlan& plan, const MemoryItems& items) {
  for (const MemoryItem& item : items) {
    if (item.size_bytes == 0) continue;
    plan.items.push_back(item);
    plan.total_bytes += item.size_bytes;
  }
}

MemoryItems gradient_work_items(const RunPlan& run, const ModelMemory& model) {
  if (!model.gradient_work || !run.options.works_on_accelerator()) return {};
  return model.gradient_work(run.layout,
                             offload::device_selection(run.options, run.layout, run.geometry));
}

}  // namespace

std::int64_t available_memory_bytes() { return procfs_kilobytes("/proc/meminfo", "MemAvailable:"); }
std::int64_t peak_resident_memory_bytes() {
  return procfs_kilobytes("/proc/self/status", "VmHWM:");
}

ModelMemory model_memory(const model::ModelFactory& factory, const RunPlan& run) {
  const model::ModelOptions options = model_options(run.config);
  ModelMemory memory;
  memory.host = factory.memory(run.shape, options);
  if (!factory.device_memory) return memory;
  memory.accelerator = factory.device_description;
  memory.on_accelerator = factory.device_memory(run.shape, options);
  memory.accelerator_cap_bytes = factory.device_memory_cap_bytes;
  memory.is_accelerator_in_host_memory = factory.is_device_in_host_memory;
  memory.gradient_work = factory.gradient_memory;
  return memory;
}

MemoryPlan plan_memory(const RunPlan& run, const ModelMemory& model) {
  MemoryPlan plan;
  add(plan, model.host);
  if (model.is_accelerator_in_host_memory) {
    MemoryItem work{"gradient work of the " + model.accelerator, 0};
    for (const MemoryItem& item : gradient_work_items(run, model))
      work.size_bytes += item.size_bytes;
    add(plan, {work});
  }
  add(plan, {{"16-bit parameters", run.layout.parameter_count * 2}});
  add(plan,
      offload::memory_items(offload::plan_offload_memory(run.options, run.geometry, run.layout),
                            run.options, run.geometry.device_count,
                            run.config.offload.backend == settings::Backend::emulated
                                ? offload::DeviceMemoryIs::host
                                : offload::DeviceMemoryIs::own));
  add(plan, {{"recording", kRecordingBytes}});
  const std::int64_t asked_bytes = run.config.resources.host_memory_bytes;
  plan.cap_bytes = asked_bytes > 0 ? asked_bytes : available_memory_bytes();
  return plan;
}

MemoryPlan plan_accelerator_memory(const RunPlan& run, const ModelMemory& model) {
  MemoryPlan plan;
  plan.of = model.accelerator;
  plan.cap_bytes = model.accelerator_cap_bytes;
  add(plan, model.on_accelerator);
  add(plan, gradient_work_items(run, model));
  return plan;
}

Status check_plan(const MemoryPlan& plan) {
  if (plan.total_bytes <= plan.cap_bytes) return ok_status();
  if (!plan.of.empty()) {
    return make_error(ErrorCode::memory,
                      "the plan for the memory of {} needs {} and its cap is {}: the smallest "
                      "accelerator_memory that would do is {}. Lower batch or sequence, or set "
                      "activations=recompute\n{}",
                      plan.of, format_bytes(plan.total_bytes), format_bytes(plan.cap_bytes),
                      size_text(plan.total_bytes), describe(plan));
  }
  return make_error(
      ErrorCode::memory,
      "the memory plan needs {} and the cap is {}: the smallest host_memory that would "
      "do is {}. Lower buffers, subgroup_elements or batch, or set "
      "activations=recompute\n{}",
      format_bytes(plan.total_bytes), format_bytes(plan.cap_bytes), size_text(plan.total_bytes),
      describe(plan));
}

std::string describe(const MemoryPlan& plan) {
  std::string text =
      plan.of.empty() ? "Memory plan:\n" : fmt::format("Memory plan of {}:\n", plan.of);
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
