#include "core/train/training_run.h"

#include <algorithm>
#include <filesystem>
#include <thread>

#include "base/log.h"
#include "core/csd/emulated_csd.h"
#include "core/model/flop.h"
#include "core/runtime/kernel_cost.h"

namespace sluice::train {
namespace {

namespace fs = std::filesystem;

offload::OffloadOptions options_of(const RunConfig& config) {
  offload::OffloadOptions options;
  options.method = config.offload.method;
  options.pipeline = config.offload.pipeline;
  options.wire = config.offload.wire;
  options.buffers = static_cast<std::int32_t>(config.offload.buffers);
  options.prefetch = config.offload.prefetch;
  options.parameter_kind = config.arithmetic.precision;
  // Several micro-batches are added up in fp32, and then 16 bits would lose what was added.
  options.gradient_kind = config.batch.grad_accum_steps > 1 ? optimizer::GradientKind::fp32
                          : config.arithmetic.precision == Float16Kind::bf16
                              ? optimizer::GradientKind::bf16
                              : optimizer::GradientKind::fp16;
  options.bounce_bytes = std::max<std::int64_t>(options.bounce_bytes, config.storage.io_bytes);
  return options;
}

int thread_count(std::int64_t asked) {
  return asked > 0 ? static_cast<int>(asked)
                   : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

// The kernels a run charges must have a rate on the engine that runs them.
Status require_rates(const platform::Platform& platform, const RunConfig& config) {
  const auto require = [&](platform::EngineId id, const char* kernel) -> Status {
    const auto& engine = platform.engines[static_cast<std::size_t>(platform::index_of(id))];
    if (engine.rate.contains(kernel)) return ok_status();
    return make_error(ErrorCode::config, "{}: engine {} has no rate for '{}', which this run needs",
                      platform.source, engine.name, kernel);
  };
  RETURN_IF_ERROR(require(platform.compute_engine, "matmul"));
  RETURN_IF_ERROR(require(platform.host_engine, "stage"));
  const char* rule = optimizer::rule_info(config.update.rule).name;
  if (config.offload.method == Method::host) return require(platform.host_engine, rule);
  for (const platform::Device& device : platform.devices) {
    RETURN_IF_ERROR(require(device.engine, rule));
  }
  return ok_status();
}

Status make_folder(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (!error) return ok_status();
  return make_error(ErrorCode::io,
                    "cannot make the folder {}: {}; choose another with --set output=", path,
                    error.message());
}

}  // namespace

Result<std::unique_ptr<TrainingRun>> TrainingRun::open(const Request& request) {
  std::unique_ptr<TrainingRun> run(new TrainingRun());
  RETURN_IF_ERROR(run->load_files(*request.config));
  RETURN_IF_ERROR(run->check_start(request.start));
  RETURN_IF_ERROR(run->plan(*request.factory));
  RETURN_IF_ERROR(check_plan(run->plan_));
  RETURN_IF_ERROR(run->check_device_memory());
  if (request.on_plan) request.on_plan(run->plan_);
  RETURN_IF_ERROR(run->take_memory());
  RETURN_IF_ERROR(run->open_clock(request));
  RETURN_IF_ERROR(run->open_text());  // from here on files are written
  RETURN_IF_ERROR(run->open_state(request.start));
  RETURN_IF_ERROR(run->open_devices());
  RETURN_IF_ERROR(run->open_model(*request.factory));
  return run;
}

TrainingRun::~TrainingRun() = default;

Status TrainingRun::load_files(const RunConfig& config) {
  config_ = config;
  ASSIGN_OR_RETURN(shape_, model::load_model_shape(config.files.model));
  layout_ = shape_.flat_layout();
  if (config.batch.sequence > shape_.sequence) {
    return make_error(ErrorCode::config, "sequence={} is longer than model {} allows ({})",
                      config.batch.sequence, shape_.name, shape_.sequence);
  }
  ASSIGN_OR_RETURN(platform::Platform platform, platform::load_platform(config.files.platform));
  ASSIGN_OR_RETURN(platform_, platform::with_devices(
                                  platform, static_cast<std::int32_t>(config.offload.devices)));
  for (const platform::Device& device : platform_.devices) {
    if (config.offload.method == Method::csd && device.internal_route.empty()) {
      return make_error(
          ErrorCode::config,
          "method=csd needs an update engine on every device, and {} of {} is a plain "
          "drive; use method=host",
          device.name, platform_.source);
    }
  }
  RETURN_IF_ERROR(require_rates(platform_, config_));
  return check_text();
}

// The text's bytes are its tokens.
Status TrainingRun::check_text() const {
  constexpr std::int64_t kByteValues = 256;
  if (shape_.vocabulary < kByteValues) {
    return make_error(ErrorCode::config,
                      "model {} knows {} different tokens; a text has {}, one a byte value",
                      shape_.name, shape_.vocabulary, kByteValues);
  }
  const std::string& path = config_.files.text;
  std::error_code error;
  const auto size_bytes = static_cast<std::int64_t>(fs::file_size(path, error));
  if (error) {
    return make_error(ErrorCode::not_found, "{}: cannot read the text: {}", path, error.message());
  }
  return data::Sampler::check(size_bytes, sampler_options(), path);
}

data::SamplerOptions TrainingRun::sampler_options() const {
  data::SamplerOptions options;
  options.batch = config_.batch.batch;
  options.sequence = config_.batch.sequence;
  options.validation_fraction = config_.validation.fraction;
  options.seed = static_cast<std::uint64_t>(config_.schedule.seed);
  return options;
}

Status TrainingRun::check_start(StartFrom start) const {
  const std::string& directory = config_.files.state_directory;
  if (start == StartFrom::new_state || state::StateStore::exists(directory)) return ok_status();
  return make_error(ErrorCode::not_found,
                    "there is no state in {} to go on from; leave out --resume to begin",
                    directory);
}

Status TrainingRun::open_text() {
  RETURN_IF_ERROR(make_folder(config_.files.output));
  const std::string token_path = (fs::path(config_.files.output) / "text.tokens").string();
  RETURN_IF_ERROR(data::prepare_byte_tokens(config_.files.text, token_path));
  ASSIGN_OR_RETURN(data::TokenFile tokens, data::TokenFile::open(token_path));
  tokens_ = std::move(tokens);
  ASSIGN_OR_RETURN(data::Sampler sampler, data::Sampler::make(&*tokens_, sampler_options()));
  sampler_ = std::move(sampler);
  return ok_status();
}

Status TrainingRun::plan(const ModelFactory& factory) {
  geometry_.parameter_count = layout_.parameter_count;
  geometry_.subgroup_elements =
      std::min(config_.offload.subgroup_elements, layout_.parameter_count);
  geometry_.variable_count = optimizer::rule_info(config_.update.rule).state_count();
  geometry_.device_count = static_cast<std::int32_t>(config_.offload.devices);
  options_ = options_of(config_);
  plan_ = plan_memory(config_, layout_, geometry_, options_, factory.memory(shape_, config_));
  return ok_status();
}

state::StateIdentity TrainingRun::identity() const {
  state::StateIdentity identity;
  identity.model_name = shape_.name;
  identity.model_fingerprint = layout_.fingerprint();
  const optimizer::RuleInfo& rule = optimizer::rule_info(config_.update.rule);
  identity.optimizer = rule.name;
  identity.variable_names.assign(rule.state_names.begin(), rule.state_names.end());
  return identity;
}

Status TrainingRun::open_state(StartFrom start) {
  const std::string& directory = config_.files.state_directory;
  const state::StateStore::Options options{directory, config_.storage.durability,
                                           config_.storage.caching};
  if (start == StartFrom::last_commit) {
    ASSIGN_OR_RETURN(store_, state::StateStore::open(options));
    RETURN_IF_ERROR(state::check_identity(identity(), store_->identity(), directory));
    RETURN_IF_ERROR(state::check_geometry(geometry_, store_->layout().geometry(), directory));
    const std::uint64_t seed = store_->committed().position.seed;
    if (seed != static_cast<std::uint64_t>(config_.schedule.seed)) {
      return make_error(ErrorCode::config,
                        "{} was begun with seed={} and this run has seed={}: the order of the text "
                        "would change",
                        directory, seed, config_.schedule.seed);
    }
    return ok_status();
  }
  RETURN_IF_ERROR(make_folder(directory));
  std::vector<double> shares = config_.offload.device_shares;
  if (shares.empty()) shares.assign(static_cast<std::size_t>(config_.offload.devices), 1.0);
  ASSIGN_OR_RETURN(store_, state::StateStore::create(
                               options, identity(), geometry_,
                               state::make_device_map(geometry_.subgroup_count(), shares)));
  return ok_status();
}

std::int64_t TrainingRun::device_budget_bytes(const platform::Device& device) const {
  const std::int64_t asked_bytes = config_.resources.device_memory_bytes;
  return asked_bytes > 0 ? asked_bytes : device.memory_bytes;
}

Status TrainingRun::check_device_memory() const {
  for (const platform::Device& device : platform_.devices) {
    if (plan_.device_set_bytes <= device_budget_bytes(device)) continue;
    return make_error(ErrorCode::memory,
                      "{} has {} of memory, and {} buffer sets for subgroups of {} elements take "
                      "{}: the smallest device_memory that would do is {} B. Or lower buffers or "
                      "subgroup_elements",
                      device.name, format_bytes(device_budget_bytes(device)), options_.set_count(),
                      geometry_.subgroup_elements, format_bytes(plan_.device_set_bytes),
                      plan_.device_set_bytes);
  }
  return ok_status();
}

Status TrainingRun::take_memory() {
  ASSIGN_OR_RETURN(parameters_, io::PageAlignedBuffer::allocate(layout_.parameter_count * 2));
  for (const platform::Device& device : platform_.devices) {
    device_memories_.emplace_back(device.name, device_budget_bytes(device), csd::Payload::real);
  }
  ASSIGN_OR_RETURN(memory_, offload::OffloadMemory::make(options_, geometry_, layout_,
                                                         device_memories_, csd::Payload::real));
  return ok_status();
}

Status TrainingRun::open_clock(const Request& request) {
  const std::int64_t lane_count = 4 * config_.offload.devices;  // state and gradients, both ways
  io::IoEngineOptions engine_options;
  engine_options.kind = config_.storage.engine;
  engine_options.queue_depth = static_cast<std::size_t>(
      std::min<std::int64_t>(4096, lane_count * config_.storage.queue_depth));
  ASSIGN_OR_RETURN(std::unique_ptr<io::IoEngine> engine, io::open_io_engine(engine_options));
  std::vector<std::span<std::byte>> regions = memory_->transfer_regions();
  for (csd::DeviceMemory& memory : device_memories_) {
    for (const std::span<std::byte> region : memory.regions()) regions.push_back(region);
  }
  if (const Status registered = engine->register_buffers(regions); !registered.ok()) {
    log_warning(
        fmt::format("transfers run without registered buffers: {}", registered.error().message()));
  }
  if (request.wrap_engine) engine = request.wrap_engine(std::move(engine));
  runtime::WorkExecutor::Options executor_options;
  executor_options.lanes = {config_.storage.io_bytes, config_.storage.queue_depth};
  executor_options.host_worker_count =
      thread_count(config_.resources.worker_threads > 0 ? config_.resources.worker_threads
                                                        : config_.resources.threads);
  ASSIGN_OR_RETURN(std::unique_ptr<runtime::WorkExecutor> executor,
                   runtime::WorkExecutor::make(std::move(engine), executor_options));
  std::unique_ptr<runtime::Clock> clock;
  if (config_.clock.kind == ClockKind::emulated) {
    auto emulated = std::make_unique<runtime::EmulatedClock>(std::move(executor), platform_,
                                                             config_.clock.time_scale);
    emulated_clock_ = emulated.get();
    clock = std::move(emulated);
  } else {
    clock = std::make_unique<runtime::RealClock>(std::move(executor));
  }
  runtime_ = std::make_unique<runtime::Runtime>(std::move(clock));
  bytes_ = std::make_unique<runtime::ByteCounters>(platform_.links.size());
  runtime_->add_sink(bytes_.get());
  if (request.recorder != nullptr) {
    recording_ = std::make_unique<runtime::RecordingSink>(*request.recorder, platform_);
    runtime_->add_sink(recording_.get());
  }
  return ok_status();
}

Status TrainingRun::open_devices() {
  const std::int64_t inflight_bytes = config_.storage.io_bytes * config_.storage.queue_depth;
  for (std::int32_t d = 0; d < geometry_.device_count; ++d) {
    const DeviceId id{d};
    const platform::Device& device = platform_.devices[static_cast<std::size_t>(d)];
    if (config_.offload.method == Method::csd) {
      auto csd = std::make_unique<csd::EmulatedCsd>(*runtime_, platform_, device, id,
                                                    inflight_bytes, csd::Payload::real);
      devices_.csds.push_back(csd.get());
      devices_.drives.push_back(std::move(csd));
    } else {
      devices_.drives.push_back(
          std::make_unique<csd::Drive>(*runtime_, device, id, inflight_bytes));
    }
    const std::string path =
        (fs::path(store_->file(id).path()).parent_path() / "gradients.slc").string();
    std::error_code ignored;
    fs::remove(path, ignored);  // scratch of an earlier run; create_new says if it is still there
    ASSIGN_OR_RETURN(io::File file,
                     io::File::open(path, {io::FileAccess::create_new, config_.storage.caching}));
    const std::int64_t size_bytes =
        offload::gradient_file_bytes(store_->layout(), id, options_.wire_gradient_kind());
    if (size_bytes > 0) RETURN_IF_ERROR(file.allocate(size_bytes));  // 0: a device with no share
    devices_.gradient_files.push_back(std::move(file));
  }
  return ok_status();
}

Status TrainingRun::open_model(const ModelFactory& factory) {
  const std::span<std::uint16_t> parameters(
      reinterpret_cast<std::uint16_t*>(parameters_.bytes().data()),
      static_cast<std::size_t>(layout_.parameter_count));
  ASSIGN_OR_RETURN(built_, factory.make(shape_, config_, parameters));
  offload::Offload::Parts parts;
  parts.runtime = runtime_.get();
  parts.platform = &platform_;
  parts.layout = &layout_;
  parts.memory = memory_.get();
  parts.devices = &devices_;
  parts.state_layout = &store_->layout();
  parts.store = store_.get();
  parts.parameters = parameters;
  offload_ = std::make_unique<offload::Offload>(options_, parts);
  step_context_.reset(new StepContext{*runtime_,
                                      platform_,
                                      *offload_,
                                      built_.model.get(),
                                      layout_,
                                      {},
                                      static_cast<int>(config_.batch.grad_accum_steps)});
  const auto engine_index = static_cast<std::size_t>(platform::index_of(platform_.compute_engine));
  const platform::Engine& engine = platform_.engines[engine_index];
  const auto kernel_ns = [&](double flop) {
    return runtime::kernel_cost(platform_.compute_engine, engine, "matmul", flop).engine_dur_ns;
  };
  for (std::int32_t layer = 0; layer < layout_.layer_count(); ++layer) {
    const LayerId id{layer};
    step_context_->layer_costs.push_back(
        {kernel_ns(model::forward_flop(shape_, id, config_.batch.batch, config_.batch.sequence)),
         kernel_ns(model::backward_flop(shape_, id, config_.batch.batch, config_.batch.sequence,
                                        config_.arithmetic.activations))});
  }
  return ok_status();
}

Status TrainingRun::prepare(StartFrom start) {
  if (start == StartFrom::last_commit) return runtime_->run(offload_->load_parameters());
  const auto seed = static_cast<std::uint64_t>(config_.schedule.seed);
  const offload::Offload::FillInitial fill = [this, seed](std::int64_t first,
                                                          std::span<float> out) {
    model::fill_initial(layout_, seed, first, out);
  };
  state::TrainingPosition position;
  position.seed = seed;
  position.loss_scale =
      config_.arithmetic.precision == Float16Kind::fp16 ? config_.loss_scale.initial : 1.0;
  return runtime_->run(offload_->create_state(fill, position));
}

}  // namespace sluice::train
