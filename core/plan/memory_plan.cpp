#include "core/plan/memory_plan.h"

#include <algorithm>
#include <limits>

#include "base/cgroups.h"
#include "base/figure_text.h"
#include "base/process_limits.h"
#include "core/model/model_factory.h"
#include "core/offload/accelerator_work.h"
#include "core/offload/offload_memory.h"
#include "core/offload/parameter_store.h"
#include "core/offload/state_cache.h"
#include "core/plan/model_options.h"
#include "core/plan/run_plan.h"
#include "core/shard/message_memory.h"

namespace sluice::plan {
namespace {

// Rings of the recorder, the collector's batches and SQLite's cache; bounded in profiler/collect.
constexpr std::int64_t kRecordingBytes = 24 << 20;

// Processor samples (profiler/sample): rings of 4 MiB, or 36 KiB a processor where that is more,
// and what knows the names of functions and the calls.
constexpr std::int64_t kSampleRingBytesMin = 36 << 10;
constexpr std::int64_t kSamplerBytes = 52 << 20;

std::int64_t sampler_bytes(const settings::RunConfig& config) {
  return config.record_samples == 0
             ? 0
             : kSamplerBytes + kSampleRingBytesMin * std::int64_t{usable_processor_count()};
}

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
                             offload::device_selection(run.options, run.share.state, run.geometry));
}

offload::DeviceMemoryIs device_memory_of(const RunPlan& run) {
  return run.config.offload.backend == settings::Backend::emulated ? offload::DeviceMemoryIs::host
                                                                   : offload::DeviceMemoryIs::own;
}

bool is_kept_in_host_memory(const RunPlan& run) {
  return run.options.method == offload::Method::host ||
         device_memory_of(run) == offload::DeviceMemoryIs::host;
}

StateCacheShare cache_of(const RunPlan& run) {
  const std::int64_t kept_count =
      offload::count_of(offload::choose_kept(run.options, run.geometry, run.device_map));
  StateCacheShare cache;
  cache.subgroup_bytes = offload::kept_subgroup_bytes(run.options, run.geometry);
  if (is_kept_in_host_memory(run)) cache.size_bytes = kept_count * cache.subgroup_bytes;
  if (run.options.method == offload::Method::csd) cache.memory_count = run.geometry.device_count;
  return cache;
}

void add_cache(MemoryPlan& plan, const RunPlan& run) {
  plan.cache = cache_of(run);
  add(plan, {{fmt::format("state of {} of {} subgroups (state_cache)",
                          plan.cache.size_bytes / plan.cache.subgroup_bytes,
                          run.geometry.subgroup_count()),
              plan.cache.size_bytes}});
}

bool is_automatic(const RunPlan& run) {
  return run.config.offload.state_cache_bytes == settings::kAutomatic;
}

// The bytes that the devices' own memory leaves for each device.
std::int64_t left_on_devices_bytes(const RunPlan& run) {
  const std::int64_t set_bytes =
      offload::plan_offload_memory(run.options, run.geometry, run.share.state).device_set_bytes;
  std::int64_t left_bytes = std::numeric_limits<std::int64_t>::max();
  for (const platform::Device& device : run.platform.devices) {
    left_bytes = std::min(left_bytes, run.device_budget_bytes(device) - set_bytes);
  }
  return left_bytes;
}

// No more than there is to keep.
void set_state_cache(RunPlan& run, std::int64_t size_bytes) {
  const std::int64_t subgroup_bytes = offload::kept_subgroup_bytes(run.options, run.geometry);
  const std::int64_t count =
      std::clamp<std::int64_t>(size_bytes / subgroup_bytes, 0, run.geometry.subgroup_count());
  run.options.state_cache_bytes = count * subgroup_bytes;
}

std::string cap_text(const MemoryPlan& plan) {
  return fmt::format("the cap is {} ({})", format_bytes(plan.cap_bytes), plan.cap_what);
}

// No setting lifts a limit that somebody has set, and part of it is taken by others (ulimit -v
// counts address space that holds no memory): by how much it is too low is what is known.
std::string smallest_cap_text(const MemoryPlan& plan) {
  if (plan.cap_source != MemoryCap::Source::set_limit) {
    return fmt::format("host_memory that would do is {}", size_text(plan.total_bytes));
  }
  return fmt::format("limit that would do is {} more ({})",
                     size_text(plan.total_bytes - plan.cap_bytes), plan.cap_what);
}

}  // namespace

std::int64_t StateCacheShare::largest_bytes(std::int64_t left_bytes) const {
  return std::max<std::int64_t>(0, left_bytes) / memory_count / subgroup_bytes * subgroup_bytes;
}

std::int64_t peak_resident_memory_bytes() {
  return 1024 * number_behind(text_below("", "/proc/self/status"), "VmHWM:").value_or(0);
}

MemoryCap memory_cap(const settings::RunConfig& config, const ProcessFacts& facts) {
  const std::int64_t asked_bytes = config.resources.host_memory_bytes;
  const ProcessLimit set = set_memory_limit(facts);
  if (asked_bytes > 0 && asked_bytes <= set.count) return {.size_bytes = asked_bytes};
  const ProcessLimit limit = asked_bytes > 0 ? set : memory_limit(facts);
  const bool is_set = set.is_limited() && limit.what == set.what;
  return {limit.count, is_set ? MemoryCap::Source::set_limit : MemoryCap::Source::machine,
          limit.what};
}

MemoryCap memory_cap(const settings::RunConfig& config) {
  return memory_cap(config, process_facts());
}

void MemoryPlan::set_cap(const MemoryCap& cap) {
  cap_bytes = cap.size_bytes;
  cap_source = cap.source;
  cap_what = cap.what;
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

namespace {

// Beside a gathered layer there are the next one and the embedding's tables.
MemoryItems trained_items(const RunPlan& run) {
  if (run.share.is_gathered()) {
    offload::OffloadOptions options;
    options.parameter_kind = run.options.parameter_kind;
    const offload::ParameterWindow window = offload::plan_parameter_window(run.layout, options);
    return {{"parameters of this rank",
             run.share.parameters.parameter_count * bytes_of(run.options.parameter_kind)},
            {"gathered layers (shard_parameters)", window.total_bytes()}};
  }
  const bool streams = run.options.streams_parameters();
  const std::int64_t size_bytes = offload::parameter_memory_bytes(run.layout, run.options);
  return {{"parameters", streams ? 0 : size_bytes},
          {"window of parameters (parameter_tier)", streams ? size_bytes : 0}};
}

MemoryItem base_item(const RunPlan& run) {
  if (run.base) {
    return {"window of base weights (parameter_tier)",
            offload::plan_parameter_window(run.base->layout, run.options).total_bytes()};
  }
  const std::int64_t count = run.shape.has_adapters() ? run.shape.base_layout().parameter_count : 0;
  return {"base weights (lora_rank)", count * bytes_of(run.options.parameter_kind)};
}

}  // namespace

MemoryItems parameter_items(const RunPlan& run) {
  MemoryItems items = trained_items(run);
  items.push_back(base_item(run));
  return items;
}

MemoryPlan plan_memory(const RunPlan& run, const ModelMemory& model, const MemoryCap& cap) {
  MemoryPlan plan;
  add(plan, model.host);
  if (model.is_accelerator_in_host_memory) {
    MemoryItem work{"gradient work of the " + model.accelerator, 0};
    for (const MemoryItem& item : gradient_work_items(run, model))
      work.size_bytes += item.size_bytes;
    add(plan, {work});
  }
  add(plan, parameter_items(run));
  add(plan, offload::memory_items(
                offload::plan_offload_memory(run.options, run.geometry, run.share.state),
                run.options, run.geometry.device_count, device_memory_of(run)));
  add_cache(plan, run);
  add(plan, {{"activations that stay (activation_host)", run.activations.host_bytes()}});
  add(plan, {{"messages between ranks",
              shard::message_memory_bytes(run.share, run.config.batch.rank_count)}});
  add(plan, {{"recording", run.config.record == record::Level::off ? 0 : kRecordingBytes}});
  add(plan, {{"processor samples (record_samples)", sampler_bytes(run.config)}});
  plan.set_cap(cap);
  return plan;
}

void fill_state_cache(RunPlan& run, MemoryPlan& plan) {
  if (!is_automatic(run)) return;
  const bool is_cap_given = plan.cap_source == MemoryCap::Source::host_memory;
  const std::int64_t spare_bytes = is_cap_given ? 0 : plan.cap_bytes / 10;
  const std::int64_t left_bytes = plan.cap_bytes - spare_bytes - plan.total_bytes;
  std::int64_t size_bytes = std::numeric_limits<std::int64_t>::max();
  if (is_kept_in_host_memory(run)) size_bytes = cache_of(run).largest_bytes(left_bytes);
  if (run.options.method == offload::Method::csd) {
    size_bytes = std::min(size_bytes, left_on_devices_bytes(run));
  }
  set_state_cache(run, size_bytes);
  add_cache(plan, run);
}

void fill_state_cache(RunPlan& run, std::int64_t left_bytes) {
  if (!is_automatic(run)) return;
  const bool is_on_host = run.options.method == offload::Method::host;
  set_state_cache(run, is_on_host ? left_bytes : left_on_devices_bytes(run));
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
  if (plan.total_bytes - plan.cache.size_bytes <= plan.cap_bytes) {
    const std::int64_t left_bytes = plan.cap_bytes - (plan.total_bytes - plan.cache.size_bytes);
    return make_error(ErrorCode::memory,
                      "the memory plan needs {}, {} of it for state_cache, and {}: the largest "
                      "state_cache that fits is {}, and the smallest {}\n{}",
                      format_bytes(plan.total_bytes), format_bytes(plan.cache.size_bytes),
                      cap_text(plan), plan.cache.largest_bytes(left_bytes), smallest_cap_text(plan),
                      describe(plan));
  }
  return make_error(ErrorCode::memory,
                    "the memory plan needs {} and {}: the smallest {}. Lower buffers, "
                    "subgroup_elements or batch, or set activations=recompute\n{}",
                    format_bytes(plan.total_bytes), cap_text(plan), smallest_cap_text(plan),
                    describe(plan));
}

std::string describe(const MemoryPlan& plan) {
  std::string text =
      plan.of.empty() ? "Memory plan:\n" : fmt::format("Memory plan of {}:\n", plan.of);
  for (const MemoryItem& item : plan.items) {
    text += fmt::format("  {:<52} {:>9}\n", item.what, format_bytes(item.size_bytes));
  }
  const std::string what = plan.cap_what.empty() ? "" : fmt::format(" ({})", plan.cap_what);
  text += fmt::format("  {:<52} {:>9}  of {}{}\n", "total", format_bytes(plan.total_bytes),
                      format_bytes(plan.cap_bytes), what);
  return text;
}

std::int64_t offload_host_bytes(const RunPlan& run) {
  const std::int64_t buffer_bytes =
      offload::plan_offload_memory(run.options, run.geometry, run.share.state).host_bytes();
  return run.options.method == offload::Method::host ? buffer_bytes + cache_of(run).size_bytes
                                                     : buffer_bytes;
}

}  // namespace sluice::plan
