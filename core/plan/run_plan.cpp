#include "core/plan/run_plan.h"

#include <algorithm>

#include "base/figure_text.h"
#include "core/model/device_name.h"
#include "core/offload/assembly_plan.h"
#include "core/offload/offload_memory.h"
#include "core/offload/parameter_store.h"
#include "core/offload/state_cache.h"
#include "core/optimizer/split_update.h"
#include "core/plan/model_options.h"
#include "core/plan/rank_share.h"
#include "core/plan/run_extent.h"
#include "core/weights/model_folder.h"

namespace sluice::plan {
namespace {

offload::OffloadOptions options_of(const settings::RunConfig& config,
                                   const shard::RankShare& share) {
  offload::OffloadOptions options{config.offload};
  // fill_state_cache() sets it where it is what the memory plan leaves.
  options.state_cache_bytes = std::max<std::int64_t>(0, options.state_cache_bytes);
  options.parameter_kind = config.arithmetic.precision;
  // Several micro-batches, of one rank or of many, are added up in fp32, and then 16 bits would
  // lose what was added.
  const bool are_added_up = config.batch.grad_accum_steps * config.batch.rank_count > 1;
  options.ranks_sum_squares = share.is_sharded();
  options.first_flat_index = share.owned().first;
  options.gradient_kind = are_added_up ? optimizer::GradientKind::fp32
                                       : optimizer::gradient_kind(config.arithmetic.precision);
  // Few buffers of a size that drives like, more when they would become unwieldy.
  const std::int64_t smallest = std::max<std::int64_t>(4 << 20, config.storage.io_bytes);
  const std::int64_t memory_bytes = config.offload.bounce_memory_bytes;
  options.bounce_bytes = std::clamp(round_up(memory_bytes / 64, kPageBytes), smallest,
                                    std::max<std::int64_t>(64 << 20, smallest));
  options.bounce_count =
      static_cast<std::int32_t>(std::max<std::int64_t>(2, memory_bytes / options.bounce_bytes));
  return options;
}

platform::EngineId compressing_engine(const platform::Platform& platform,
                                      const settings::RunConfig& config) {
  return config.offload.gradient_work == offload::GradientWork::accelerator
             ? platform.compute_engine
             : platform.compressing_engine();
}

// The kernels a run charges must have a rate on the engine that runs them.
Status require_rates(const platform::Platform& platform, const settings::RunConfig& config) {
  const auto require = [&](platform::EngineId id, const char* kernel) -> Status {
    const auto& engine = platform.engine(id);
    if (engine.rate.contains(kernel)) return ok_status();
    return make_error(ErrorCode::config, "{}: engine {} has no rate for '{}', which this run needs",
                      platform.source, engine.name, kernel);
  };
  RETURN_IF_ERROR(require(platform.compute_engine, "matmul"));
  RETURN_IF_ERROR(require(platform.host_engine, "stage"));
  const bool is_sparse = config.offload.density < 1;
  if (is_sparse) RETURN_IF_ERROR(require(compressing_engine(platform, config), "compress"));
  const char* rule = optimizer::rule_info(config.update.rule).name;
  if (config.offload.method == offload::Method::host) return require(platform.host_engine, rule);
  for (const platform::Device& device : platform.devices) {
    RETURN_IF_ERROR(require(device.engine, rule));
    if (is_sparse) RETURN_IF_ERROR(require(device.engine, "decompress"));
  }
  return ok_status();
}

Status require_accelerator(const platform::Platform& platform, offload::GradientWork work) {
  if (work == offload::GradientWork::host || !platform.accelerator_routes.empty()) {
    return ok_status();
  }
  return make_error(ErrorCode::config,
                    "gradient_work=accelerator, and {} computes in host memory: set device=cuda or "
                    "soft, or leave the gradients' work to the host",
                    platform.source);
}

Status require_engines(const platform::Platform& platform, offload::Method method) {
  if (method == offload::Method::host) return ok_status();
  for (const platform::Device& device : platform.devices) {
    if (!device.internal_route.empty()) continue;
    return make_error(ErrorCode::config,
                      "method=csd needs an update engine on every device, and {} of {} is a plain "
                      "drive; use method=host",
                      device.name, platform.source);
  }
  return ok_status();
}

// The arrays of each subgroup, and that these are whole groups. Only what is one subgroup in all
// may end within a group.
Status set_arrays(RunPlan& plan, const settings::RunConfig& config) {
  state::Geometry& geometry = plan.geometry;
  const StateFormat& format = config.offload.state_format;
  const StoredArrays stored = optimizer::stored_arrays(config.update.rule, format);
  geometry.variable_count = stored.count;
  geometry.codes = stored.codes;
  const std::int64_t elements = geometry.subgroup_elements;
  const bool is_all = !plan.share.is_sharded() && elements == geometry.parameter_count;
  if (!format.is_split() || elements % kGroupElements == 0 || is_all) return ok_status();
  return make_error(ErrorCode::config,
                    "subgroup_elements={}: with state_format={} subgroups are whole groups of {} "
                    "elements; the next one is {}",
                    elements, settings::value_of(config, "state_format"), kGroupElements,
                    round_up(elements, kGroupElements));
}

Status check_parameter_buffer(const RunPlan& plan, const model::FlatLayout& layout) {
  const offload::ParameterWindow window = offload::plan_parameter_window(layout, plan.options);
  const std::int64_t asked_bytes = plan.options.parameter_buffer_bytes;
  if (!plan.options.streams_parameters() || asked_bytes == 0 ||
      asked_bytes >= window.widest_bytes) {
    return ok_status();
  }
  return make_error(ErrorCode::config,
                    "parameter_buffer={}: the parameters of {}'s widest layer take {}; give that "
                    "at least, or 0 for twice as much",
                    asked_bytes, plan.shape.name, size_text(window.widest_bytes));
}

Status plan_activations(RunPlan& plan) {
  const settings::ArithmeticConfig& arithmetic = plan.config.arithmetic;
  const settings::BatchConfig& batch = plan.config.batch;
  RETURN_IF_ERROR(arithmetic.activations.check(plan.layout.layer_count()));
  plan.activations = activation::plan_activations(
      plan.shape, arithmetic.precision, arithmetic.activations, batch.batch, batch.sequence,
      static_cast<int>(batch.grad_accum_steps), arithmetic.activation_buffer_bytes,
      arithmetic.activation_host_bytes);
  if (arithmetic.activation_host_bytes == 0 || !plan.platform.accelerator_routes.empty()) {
    return ok_status();
  }
  return make_error(ErrorCode::config,
                    "activation_host={}: no accelerator computes, so what layers keep is in host "
                    "memory already; activation_buffer says how much of it stays there",
                    arithmetic.activation_host_bytes);
}

}  // namespace

platform::Platform with_needed_accelerator(const platform::Platform& platform,
                                           const settings::RunConfig& config) {
  return model::computes_in_host_memory(config.resources.device)
             ? platform
             : platform::with_an_accelerator(platform);
}

Result<platform::Platform> with_real_accelerator(const platform::Platform& platform,
                                                 const settings::RunConfig& config) {
  return platform::with_accelerators(
      platform, model::computes_in_host_memory(config.resources.device) ? 0 : 1);
}

std::int64_t RunPlan::device_budget_bytes(const platform::Device& device) const {
  const std::int64_t asked_bytes = config.resources.device_memory_bytes;
  return asked_bytes > 0 ? asked_bytes : device.memory_bytes;
}

offload::AssemblyPlan assembly_plan(const RunPlan& plan, csd::Payload payload) {
  offload::AssemblyPlan assembly;
  assembly.options = plan.options;
  assembly.platform = &plan.platform;
  assembly.layout = &plan.share.state;
  assembly.geometry = plan.geometry;
  assembly.device_map = plan.device_map;
  assembly.base = plan.base;
  assembly.drive.inflight_bytes = plan.config.storage.io_bytes * plan.config.storage.queue_depth;
  for (const platform::Device& device : plan.platform.devices) {
    assembly.device_memory_bytes.push_back(plan.device_budget_bytes(device));
  }
  assembly.payload = payload;
  return assembly;
}

Result<RunPlan> plan_run(const settings::RunConfig& config) {
  ASSIGN_OR_RETURN(const model::ModelShape shape, weights::load_shape(config.files.model));
  ASSIGN_OR_RETURN(const platform::Platform platform,
                   platform::load_platform(config.files.platform));
  return plan_run(config, shape, platform);
}

Result<RunPlan> plan_run(const settings::RunConfig& config, const model::ModelShape& shape,
                         const platform::Platform& platform) {
  RunPlan plan;
  plan.config = config;
  ASSIGN_OR_RETURN(plan.shape, model::with_adapters(shape, lora_choice(config)));
  plan.shape.stacks.spans = {config.objective.span_share, config.objective.span_length};
  plan.layout = plan.shape.flat_layout();
  RETURN_IF_ERROR(plan.shape.check_sequence(config.batch.sequence));
  RETURN_IF_ERROR(check_step_extent(config.batch, plan.shape));
  ASSIGN_OR_RETURN(plan.platform, platform::with_devices(
                                      platform, static_cast<std::int32_t>(config.offload.devices)));
  plan.platform = with_needed_accelerator(plan.platform, config);
  if (config.offload.accelerators > 0) {
    ASSIGN_OR_RETURN(plan.platform,
                     platform::with_accelerators(
                         plan.platform, static_cast<std::int32_t>(config.offload.accelerators)));
  }
  ASSIGN_OR_RETURN(plan.share, plan_rank_share(config, plan.layout));
  plan.geometry.parameter_count = plan.share.state.parameter_count;
  plan.geometry.subgroup_elements = plan.share.subgroup_elements;
  if (!plan.share.is_sharded()) {  // else as long as others', whose states go with this one
    plan.geometry.subgroup_elements =
        std::min(plan.geometry.subgroup_elements, plan.geometry.parameter_count);
  }
  RETURN_IF_ERROR(set_arrays(plan, config));
  plan.geometry.device_count = static_cast<std::int32_t>(config.offload.devices);
  RETURN_IF_ERROR(check_subgroup_count(plan.geometry, plan.shape));
  settings::RunConfig chosen = config;
  chosen.shards.parameters = platform::scope_text(plan.share.triple.parameters);
  chosen.shards.gradients = platform::scope_text(plan.share.triple.gradients);
  chosen.shards.state = platform::scope_text(plan.share.triple.state);
  RETURN_IF_ERROR(set_knobs(plan, chosen));
  RETURN_IF_ERROR(check_parameter_buffer(plan, plan.layout));
  if (plan.base) RETURN_IF_ERROR(check_parameter_buffer(plan, plan.base->layout));
  return plan;
}

Result<RunPlan> plan_tensors(const settings::RunConfig& config, model::FlatLayout layout,
                             const platform::Platform& platform) {
  RunPlan plan;
  plan.config = config;
  plan.shape.name = config.files.name;
  plan.layout = std::move(layout);
  ASSIGN_OR_RETURN(plan.platform, platform::with_devices(
                                      platform, static_cast<std::int32_t>(config.offload.devices)));
  ASSIGN_OR_RETURN(plan.share,
                   shard::plan_share(plan.layout, {}, {1, 1}, 0, config.offload.subgroup_elements));
  plan.geometry.parameter_count = plan.layout.parameter_count;
  plan.geometry.subgroup_elements =
      std::min(plan.share.subgroup_elements, plan.geometry.parameter_count);
  RETURN_IF_ERROR(set_arrays(plan, config));
  plan.geometry.device_count = static_cast<std::int32_t>(config.offload.devices);
  RETURN_IF_ERROR(check_subgroup_count(plan.geometry, plan.shape));
  RETURN_IF_ERROR(set_knobs(plan, config));
  RETURN_IF_ERROR(check_parameter_buffer(plan, plan.layout));
  return plan;
}

// A cache that nothing fits into would do nothing, and not say so.
Status check_state_cache(const RunPlan& plan, const settings::RunConfig& config) {
  const std::int64_t asked_bytes = config.offload.state_cache_bytes;
  const std::int64_t least_bytes =
      offload::kept_subgroup_bytes(options_of(config, plan.share), plan.geometry);
  if (asked_bytes <= 0 || asked_bytes >= least_bytes) return ok_status();
  return make_error(ErrorCode::config,
                    "state_cache={} keeps nothing: the state of one subgroup takes {}; give that "
                    "at least, or lower subgroup_elements, or state_cache=0",
                    asked_bytes, size_text(least_bytes));
}

Status set_knobs(RunPlan& plan, const settings::RunConfig& config) {
  RETURN_IF_ERROR(check_state_cache(plan, config));
  RETURN_IF_ERROR(check_sharded(plan.share, config));
  RETURN_IF_ERROR(require_engines(plan.platform, config.offload.method));
  RETURN_IF_ERROR(require_accelerator(plan.platform, config.offload.gradient_work));
  RETURN_IF_ERROR(require_rates(plan.platform, config));
  std::vector<double> shares = config.offload.device_shares;
  if (shares.empty()) shares.assign(static_cast<std::size_t>(config.offload.devices), 1.0);
  plan.config = config;
  plan.device_map = state::make_device_map(plan.geometry.subgroup_count(), shares);
  plan.options = options_of(config, plan.share);
  plan.base = nullptr;
  if (plan.shape.has_adapters() && plan.options.streams_parameters())
    plan.base = std::make_shared<const offload::BaseCut>(
        offload::cut_base(plan.shape.base_layout(), shares, plan.options));
  if (plan.is_of_tensors()) {
    plan.options.gradient_kind = optimizer::GradientKind::fp32;
    plan.layer_costs.assign(plan.layout.layers.size(), LayerCost());
    return ok_status();
  }
  RETURN_IF_ERROR(plan_activations(plan));
  const settings::BatchConfig& batch = config.batch;
  plan.layer_costs = layer_costs(plan.platform, plan.shape,
                                 {batch.batch, batch.sequence, config.arithmetic.activations});
  return ok_status();
}

Status check_activations(const RunPlan& plan, bool model_gives_blocks) {
  if (model_gives_blocks || !plan.activations.offloads_anything()) return ok_status();
  return make_error(ErrorCode::unsupported,
                    "activations = \"{}\": model {} keeps what it keeps in memory",
                    plan.config.arithmetic.activations.text(), plan.shape.name);
}

Status check_device_memory(const RunPlan& plan) {
  if (plan.options.method == offload::Method::host) return ok_status();
  const std::int64_t set_bytes =
      offload::plan_offload_memory(plan.options, plan.geometry, plan.share.state).device_set_bytes;
  const std::int64_t subgroup_bytes = offload::kept_subgroup_bytes(plan.options, plan.geometry);
  const offload::KeptSubgroups kept =
      offload::choose_kept(plan.options, plan.geometry, plan.device_map);
  for (const DeviceId id : ids_of(kept)) {
    const platform::Device& device = plan.platform.device(id);
    const std::int64_t budget_bytes = plan.device_budget_bytes(device);
    const std::int64_t kept_bytes = std::ssize(kept[id]) * subgroup_bytes;
    if (set_bytes + kept_bytes <= budget_bytes) continue;
    if (set_bytes <= budget_bytes) {
      return make_error(ErrorCode::memory,
                        "{} has {} of memory, its buffer sets take {}, and the state that "
                        "state_cache={} keeps {}: the largest state_cache that fits is {}",
                        device.name, format_bytes(budget_bytes), format_bytes(set_bytes),
                        plan.options.state_cache_bytes, format_bytes(kept_bytes),
                        (budget_bytes - set_bytes) / subgroup_bytes * subgroup_bytes);
    }
    return make_error(ErrorCode::memory,
                      "{} has {} of memory, and {} buffer sets for subgroups of {} elements take "
                      "{}: the smallest device_memory that would do is {}. Or lower buffers or "
                      "subgroup_elements",
                      device.name, format_bytes(budget_bytes), plan.options.set_count(),
                      plan.geometry.subgroup_elements, format_bytes(set_bytes),
                      size_text(set_bytes));
  }
  return ok_status();
}

}  // namespace sluice::plan
