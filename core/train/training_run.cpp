#include "core/train/training_run.h"

#include <algorithm>
#include <filesystem>
#include <tuple>

#include "base/log.h"
#include "base/process_limits.h"
#include "core/offload/accelerator_work.h"
#include "core/plan/drive_room.h"
#include "core/plan/model_options.h"
#include "core/plan/rank_share.h"
#include "core/train/gradient_work.h"

namespace sluice::train {
namespace {

namespace fs = std::filesystem;

int thread_count(std::int64_t asked) {
  return asked > 0 ? static_cast<int>(asked) : usable_processor_count();
}

Status make_folder(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (!error) return ok_status();
  return make_error(ErrorCode::io,
                    "cannot make the folder {}: {}; choose another with --set output=", path,
                    error.message());
}

// First of all: what else a plan would find wrong with such a model is beside the point.
Status check_model(const settings::RunConfig& config) {
  ASSIGN_OR_RETURN(const model::ModelShape shape, model::load_model_shape(config.files.model));
  return model::check_trainable(shape);
}

runtime::IoLanes::Options lanes_of(const settings::StorageConfig& storage) {
  return {storage.io_bytes, storage.queue_depth};
}

}  // namespace

Result<std::unique_ptr<TrainingRun>> TrainingRun::open(const Request& request) {
  std::unique_ptr<TrainingRun> run(new TrainingRun());
  run->ranks_ = request.ranks;
  run->stops_ = request.stops;
  RETURN_IF_ERROR(run->plan_all(request));
  RETURN_IF_ERROR(run->check_ranks());
  RETURN_IF_ERROR(run->check_origin(request.start));
  if (request.on_plan) {
    request.on_plan(run->memory_plan_);
    if (run->accelerator_memory_plan_) request.on_plan(*run->accelerator_memory_plan_);
  }
  RETURN_IF_ERROR(run->open_clock(request));
  RETURN_IF_ERROR(run->take_memory());
  RETURN_IF_ERROR(run->open_text());  // from here on files are written
  RETURN_IF_ERROR(run->open_state(request.start));
  RETURN_IF_ERROR(run->open_shards());
  RETURN_IF_ERROR(run->open_model(*request.factory));
  RETURN_IF_ERROR(run->attach_offload());
  return run;
}

Status TrainingRun::plan_all(const Request& request) { return agreed(plan_own(request)); }

// All that this rank's settings, and the files that they name, may be refused for.
Status TrainingRun::plan_own(const Request& request) {
  RETURN_IF_ERROR(check_model(*request.config));
  ASSIGN_OR_RETURN(plan_, plan::plan_run(*request.config));
  if (config().clock.kind == settings::ClockKind::real) {
    ASSIGN_OR_RETURN(plan_.platform, plan::with_real_accelerator(plan_.platform, config()));
  }
  if (ranks_ != nullptr && config().clock.kind == settings::ClockKind::emulated) {
    RETURN_IF_ERROR(ranks_->charge(plan_.platform, ranks_->count(), plan_.share));
  }
  RETURN_IF_ERROR(check_text());
  recipe_ = recipe_of(config(), plan_.shape, text_);
  RETURN_IF_ERROR(check_start(request.start));
  return plan_memory(*request.factory);
}

// What one rank is refused for ends all of them.
Status TrainingRun::agreed(const Status& mine) {
  return ranks_ == nullptr ? mine : ranks_->agreed_or_end(mine, "start of the run");
}

Status TrainingRun::check_ranks() {
  return ranks_ == nullptr ? ok_status() : agreed(check_same_on_ranks(*ranks_, recipe_));
}

Status TrainingRun::check_origin(StartFrom start) { return agreed(load_history(start)); }

// Other ranks may have kept the state; what it was made with is the same for all of them.
Status TrainingRun::load_history(StartFrom start) {
  if (start == StartFrom::new_state) return ok_status();
  const settings::StatePlaces& places = plan_.config.files.state_places;
  for (const std::string& place :
       {plan_.config.files.state_directory, places.alone, places.of_rank(0)}) {
    if (!state::StateStore::exists(place)) continue;
    ASSIGN_OR_RETURN(history_, RecipeHistory::load(place));
    if (history_) return history_->check_origin(recipe_, place, plan_.config.files.text);
  }
  return ok_status();
}

// Whoever leaves with an error may leave a step that is still being written.
TrainingRun::~TrainingRun() {
  if (step_context_ == nullptr) return;
  const Status settled = settle();
  static_cast<void>(settled);  // the error that is being told comes first
}

std::string TrainingRun::emulated_ranks() const {
  const bool has_costs = ranks_ != nullptr && ranks_->costs() != nullptr;
  return has_costs ? platform::scope_text(ranks_->costs()->mesh()) : std::string();
}

Status TrainingRun::settle() {
  Status settled = runtime_->run(offload().settle());
  if (shards_ != nullptr) {
    // Also where the offload has failed: what is under way uses the run's memory.
    const Status shared = runtime_->run(shards_->settle());
    if (settled.ok()) settled = shared;
  }
  if (recording_) recording_->record_counters();
  return settled;
}

Status TrainingRun::commit() {
  Status committed = runtime_->run(offload().commit());
  if (shards_ != nullptr && committed.ok()) committed = runtime_->run(shards_->settle());
  if (recording_) recording_->record_counters();
  return committed;
}

// The text's bytes are its tokens.
Status TrainingRun::check_text() {
  constexpr std::int64_t kByteValues = 256;
  if (plan_.shape.vocabulary < kByteValues) {
    return make_error(ErrorCode::config,
                      "model {} knows {} different tokens; a text has {}, one a byte value",
                      plan_.shape.name, plan_.shape.vocabulary, kByteValues);
  }
  const std::string& path = plan_.config.files.text;
  std::error_code error;
  const auto size_bytes = static_cast<std::int64_t>(fs::file_size(path, error));
  if (error) {
    const std::string how = data::how_to_get_text(path);
    return make_error(ErrorCode::not_found, "{}: cannot read the text: {}{}{}", path,
                      error.message(), how.empty() ? "" : "; ", how);
  }
  RETURN_IF_ERROR(data::Sampler::check(size_bytes, sampler_options(), path));
  ASSIGN_OR_RETURN(text_, data::look_at_text(path));
  return ok_status();
}

data::SamplerOptions TrainingRun::sampler_options() const {
  data::SamplerOptions options;
  options.batch = plan_.config.batch.batch;
  options.sequence = plan_.config.batch.sequence;
  options.validation_fraction = plan_.config.validation.fraction;
  options.seed = static_cast<std::uint64_t>(plan_.config.schedule.seed);
  return options;
}

Status TrainingRun::check_start(StartFrom start) const {
  const std::string& directory = plan_.config.files.state_directory;
  if (start == StartFrom::last_commit && state::StateStore::exists(directory)) return ok_status();
  // Those of other ranks may do, and are in the way of a new one.
  const settings::StatePlaces& places = plan_.config.files.state_places;
  const std::string of_others = ranks_ == nullptr ? places.of_rank(0) : places.alone;
  const bool is_there = state::StateStore::exists(of_others);
  if (start == StartFrom::new_state && is_there) {
    return make_error(ErrorCode::config,
                      "{}: there is the state of a run of {}: go on from it with --resume, or move "
                      "it away, or choose another output",
                      of_others, ranks_ == nullptr ? "several ranks" : "one rank");
  }
  if (start == StartFrom::new_state || is_there) return ok_status();
  if (ranks_ != nullptr && state::StateStore::exists(places.of_rank(0))) return ok_status();
  return make_error(ErrorCode::not_found,
                    "there is no state in {} to go on from; leave out --resume to begin",
                    directory);
}

// All ranks have the same tokens, OUTPUT/text.tokens. Each looks for them and makes them, since an
// OUTPUT may be one machine's; who is last replaces a file by its equal.
Status TrainingRun::open_text() {
  const fs::path output(plan_.config.files.output);
  RETURN_IF_ERROR(make_folder(output.string()));
  const fs::path folder = ranks_ == nullptr ? output : output.parent_path();
  const std::string token_path = (folder / "text.tokens").string();
  RETURN_IF_ERROR(data::prepare_byte_tokens(plan_.config.files.text, text_, token_path, stops_));
  ASSIGN_OR_RETURN(data::TokenFile tokens, data::TokenFile::open(token_path));
  tokens_ = std::move(tokens);
  ASSIGN_OR_RETURN(data::Sampler sampler, data::Sampler::make(&*tokens_, sampler_options()));
  sampler_ = std::move(sampler);
  return ok_status();
}

state::StateIdentity TrainingRun::identity() const {
  state::StateIdentity identity;
  identity.model_name = plan_.shape.name;
  identity.model_fingerprint = plan_.layout.fingerprint();
  const optimizer::RuleInfo& rule = optimizer::rule_info(plan_.config.update.rule);
  identity.optimizer = rule.name;
  identity.variable_names.assign(rule.state_names.begin(), rule.state_names.end());
  identity.share = plan_.share.share;
  return identity;
}

state::StateStore::Options TrainingRun::state_options() const {
  return {plan_.config.files.state_directory, plan_.config.storage.durability,
          plan_.config.storage.caching};
}

Status TrainingRun::open_state(StartFrom start) {
  const state::StateStore::Options options = state_options();
  if (start == StartFrom::last_commit) return go_on_with(options);
  RETURN_IF_ERROR(make_folder(options.directory));
  ASSIGN_OR_RETURN(
      store_, state::StateStore::create(options, identity(), plan_.geometry, plan_.device_map));
  return ok_status();
}

Status TrainingRun::go_on_with(const state::StateStore::Options& options) {
  ASSIGN_OR_RETURN(resharded_, reshard(plan_, identity(), ranks_, stops_));
  // The folder is new, or those of other ranks are gone.
  if (resharded_.has_changed && history_) RETURN_IF_ERROR(history_->save(options));
  ASSIGN_OR_RETURN(store_, state::StateStore::open(options));
  RETURN_IF_ERROR(go_back_together(options));
  RETURN_IF_ERROR(agreed(check_found()));
  const std::int64_t step = store_->committed().position.step;
  if (history_) recipe_changes_ = history_->changes(recipe_, step);
  if (plan_.geometry.device_count < store_->layout().geometry().device_count) {
    store_.reset();
    RETURN_IF_ERROR(state::StateStore::remove_devices(options, plan_.geometry.device_count));
    ASSIGN_OR_RETURN(store_, state::StateStore::open(options));
  }
  // What lies elsewhere than the settings say moves there with the first step.
  RETURN_IF_ERROR(plan::check_drive_room(plan_, state_files()));
  return store_->reserve(plan_.device_map);
}

// The state that is there is one that these settings can go on with.
Status TrainingRun::check_found() const {
  const std::string& directory = plan_.config.files.state_directory;
  RETURN_IF_ERROR(state::check_identity(identity(), store_->identity(), directory));
  const state::Geometry found = store_->layout().geometry();
  state::Geometry wanted = plan_.geometry;
  wanted.device_count = std::max(wanted.device_count, found.device_count);  // fewer can leave
  RETURN_IF_ERROR(state::check_geometry(wanted, found, directory));
  const std::uint64_t seed = store_->committed().position.seed;
  if (seed == static_cast<std::uint64_t>(plan_.config.schedule.seed)) return ok_status();
  return make_error(ErrorCode::config,
                    "{} was begun with seed={} and this run has seed={}: the order of the text "
                    "would change",
                    directory, seed, plan_.config.schedule.seed);
}

// To the newest step that all ranks have.
Status TrainingRun::go_back_together(const state::StateStore::Options& options) {
  if (ranks_ == nullptr) return ok_status();
  const std::int64_t last = store_->committed().position.step;
  ASSIGN_OR_RETURN(const std::int64_t common, ranks_->last_common_step(last));
  if (common == last) return ok_status();
  store_.reset();
  RETURN_IF_ERROR(state::StateStore::return_to(options, common));
  ASSIGN_OR_RETURN(store_, state::StateStore::open(options));
  return ok_status();
}

Status TrainingRun::take_memory() {
  const std::int64_t size_bytes = plan_.layout.parameter_count * 2;
  if (plan_.share.is_gathered()) {
    ASSIGN_OR_RETURN(parameter_part_,
                     pinned_memory_->allocate(plan_.share.parameters.parameter_count * 2));
  }
  if (plan_.options.streams_parameters() || plan_.share.is_gathered()) {
    ASSIGN_OR_RETURN(io::PageAlignedBuffer addresses, offload::map_parameters(size_bytes));
    parameters_ = io::PinnedBuffer(std::move(addresses));
  } else {
    ASSIGN_OR_RETURN(parameters_, pinned_memory_->allocate(size_bytes));
  }
  return take_offload();
}

Status TrainingRun::take_offload() {
  offload::AssemblyPlan assembly = plan::assembly_plan(plan_, csd::Payload::real);
  assembly.pinned_memory = pinned_memory_.get();
  if (ranks_ != nullptr) {
    assembly.committed_elsewhere = [this](std::int32_t step) {
      return ranks_->all_committed(*runtime_, step);
    };
  }
  const shard::Stretch owned = plan_.share.owned();
  ASSIGN_OR_RETURN(assembly_, offload::Assembly::take(
                                  assembly, *runtime_, *device_factory_,
                                  parameter_part().subspan(static_cast<std::size_t>(owned.first),
                                                           static_cast<std::size_t>(owned.count))));
  register_buffers();
  return ok_status();
}

Status TrainingRun::attach_offload() {
  RETURN_IF_ERROR(assembly_->attach(*store_, plan_.config.storage.caching));
  RETURN_IF_ERROR(attach_activations());
  attach_shards();
  step_context_.reset(new StepContext{
      *runtime_, plan_.platform, offload(), built_.model.get(), plan_.layout, plan_.layer_costs,
      plan_.config.batch.batch * plan_.config.batch.sequence, built_.device.get(),
      device_patience_ns(), activations_.get(), ranks_, shards_.get()});
  if (recording_) {
    plan::record_memory(*recording_, plan_, assembly_->sites(), runtime_->now_ns());
  }
  return prepare_gradient_work();
}

// With the offload, whose updates it brings to the other ranks.
void TrainingRun::attach_shards() {
  if (shard_groups_ == nullptr) return;
  shards_ = std::make_unique<ShardTraffic>(
      ShardTraffic::Parts{*runtime_, *shard_groups_, plan_.share, *plan::shard_overlaps(config()),
                          plan_.layout, offload(), parameters(), parameter_part()});
}

Status TrainingRun::open_shards() {
  if (!plan_.share.is_sharded()) return ok_status();
  ASSIGN_OR_RETURN(shard_groups_, ranks_->make_shard_groups(plan_.share));
  return ok_status();
}

// All ranks have what they compute with, from a state that was made or loaded.
Status TrainingRun::share_parameters() {
  if (shards_ == nullptr) return ok_status();
  shards_->share_updated();
  return runtime_->run(shards_->settle());
}

Status TrainingRun::attach_activations() {
  model::KeptBlocks* const blocks = built_.model->kept_blocks();
  RETURN_IF_ERROR(plan::check_activations(plan_, blocks != nullptr));
  if (plan_.activations.offloads_anything() && !plan_.activations.stays)
    RETURN_IF_ERROR(make_activation_files());
  activations_ =
      std::make_unique<activation::ActivationCarrier>(activation::ActivationCarrier::Parts{
          *runtime_, plan_.platform, assembly_->drives(), plan_.layout, plan_.activations, blocks,
          built_.device.get(), device_patience_ns()});
  return ok_status();
}

Status TrainingRun::make_activation_files() {
  const auto bytes = activation::drive_bytes(plan_.activations, plan_.geometry.device_count);
  for (const DeviceId device : ids_of(assembly_->drives())) {
    const std::string folder = fs::path(store_->file(device).path()).parent_path().string();
    RETURN_IF_ERROR(assembly_->drives()[device]->files().make_unnamed(
        runtime::DriveFile::activations, folder, plan_.config.storage.caching, bytes[device]));
  }
  return ok_status();
}

Status TrainingRun::open_clock(const Request& request) {
  io::IoEngineOptions engine_options;
  engine_options.kind = plan_.config.storage.engine;
  engine_options.queue_depth = 4096;  // of all lanes, whose own depth is a knob
  ASSIGN_OR_RETURN(std::unique_ptr<io::IoEngine> engine, io::open_io_engine(engine_options));
  engine_ = engine.get();
  device_factory_ = request.devices != nullptr ? request.devices : &emulated_devices_;
  if (request.wrap_engine) engine = request.wrap_engine(std::move(engine));
  runtime::WorkExecutor::Options executor_options;
  executor_options.lanes = lanes_of(plan_.config.storage);
  executor_options.host_worker_count =
      thread_count(plan_.config.resources.worker_threads > 0 ? plan_.config.resources.worker_threads
                                                             : plan_.config.resources.threads);
  ASSIGN_OR_RETURN(std::unique_ptr<runtime::WorkExecutor> executor,
                   runtime::WorkExecutor::make(std::move(engine), executor_options));
  executor_ = executor.get();
  std::unique_ptr<runtime::Clock> clock;
  if (plan_.config.clock.kind == settings::ClockKind::emulated) {
    auto emulated = std::make_unique<runtime::EmulatedClock>(std::move(executor), plan_.platform,
                                                             plan_.config.clock.time_scale);
    emulated_clock_ = emulated.get();
    clock = std::move(emulated);
  } else {
    clock = std::make_unique<runtime::RealClock>(std::move(executor));
  }
  runtime_ = std::make_unique<runtime::Runtime>(std::move(clock));
  bytes_ = std::make_unique<runtime::ByteCounters>(plan_.platform.links.size());
  runtime_->add_sink(bytes_.get());
  if (request.recorder != nullptr) {
    recording_ = std::make_unique<runtime::RecordingSink>(*request.recorder, plan_.platform);
    runtime_->add_sink(recording_.get());
  }
  return ok_status();
}

void TrainingRun::register_buffers() {
  const Status registered = engine_->register_buffers(assembly_->transfer_regions());
  if (registered.ok()) return;
  log_warning(
      fmt::format("transfers run without registered buffers: {}", registered.error().message()));
}

Status TrainingRun::open_model(const model::ModelFactory& factory) {
  ASSIGN_OR_RETURN(built_,
                   factory.make(plan_.shape, plan::model_options(plan_.config), parameters()));
  if (recording_ && built_.device != nullptr) {
    recording_->watch_accelerator_memory(
        [device = built_.device.get()] { return device->memory_use().now_bytes; });
  }
  return ok_status();
}

TimeNs TrainingRun::device_patience_ns() const {
  return static_cast<TimeNs>(plan_.config.offload.device_patience * 1e9);
}

Status TrainingRun::plan_memory(const model::ModelFactory& factory) {
  pinned_memory_ =
      factory.pinned != nullptr ? factory.pinned : std::make_shared<io::PinnedMemory>();
  model_memory_of_ = [factory](const plan::RunPlan& run) {
    return plan::model_memory(factory, run);
  };
  model_memory_ = model_memory_of_(plan_);
  const plan::MemoryCap cap = plan::memory_cap(config());
  memory_plan_ = plan::plan_memory(plan_, model_memory_, cap);
  const bool has_accelerator = !model_memory_.accelerator.empty();
  if (has_accelerator) {
    accelerator_memory_plan_ = plan::plan_accelerator_memory(plan_, model_memory_);
  } else if (plan_.options.works_on_accelerator()) {
    return make_error(ErrorCode::config,
                      "gradient_work=accelerator, and device=cpu computes in host memory: set "
                      "device=cuda or soft, or leave the gradients' work to the host");
  }
  RETURN_IF_ERROR(plan_for_density_warmup(cap));
  plan::fill_state_cache(plan_, memory_plan_);
  RETURN_IF_ERROR(plan::check_plan(memory_plan_));
  RETURN_IF_ERROR(plan::check_device_memory(plan_));
  return has_accelerator ? plan::check_plan(*accelerator_memory_plan_) : ok_status();
}

std::span<std::uint16_t> TrainingRun::parameter_part() {
  if (!plan_.share.is_gathered()) return parameters();
  return {reinterpret_cast<std::uint16_t*>(parameter_part_.bytes().data()),
          static_cast<std::size_t>(plan_.share.parameters.parameter_count)};
}

std::span<std::uint16_t> TrainingRun::parameters() {
  return {reinterpret_cast<std::uint16_t*>(parameters_.bytes().data()),
          static_cast<std::size_t>(plan_.layout.parameter_count)};
}

// The densities of the warm-up take more than the one after it: the plan is that of the largest.
Status TrainingRun::plan_for_density_warmup(const plan::MemoryCap& cap) {
  const settings::OffloadConfig& offload = plan_.config.offload;
  for (std::int64_t step = 0; step < offload.density_warmup_steps; ++step) {
    const double density =
        settings::density_at(step, offload.density, offload.density_warmup_steps);
    plan::RunPlan stage = plan_;
    if (density == stage.options.density) continue;
    stage.options.density = density;
    RETURN_IF_ERROR(plan::check_device_memory(stage));
    plan::MemoryPlan memory_plan = plan::plan_memory(stage, model_memory_, cap);
    if (memory_plan.total_bytes > memory_plan_.total_bytes) memory_plan_ = std::move(memory_plan);
    if (!accelerator_memory_plan_) continue;
    memory_plan = plan::plan_accelerator_memory(stage, model_memory_);
    if (memory_plan.total_bytes > accelerator_memory_plan_->total_bytes) {
      accelerator_memory_plan_ = std::move(memory_plan);
    }
  }
  return ok_status();
}

plan::LivePlan TrainingRun::live_plan() const {
  return {plan_, model_memory_of_, state_files(), recording_ != nullptr,
          built_.model->kept_blocks() != nullptr};
}

std::vector<std::string> TrainingRun::state_files() const {
  std::vector<std::string> paths;
  for (std::int32_t d = 0; d < plan_.geometry.device_count; ++d) {
    paths.push_back(store_->file(DeviceId{d}).path());
  }
  return paths;
}

Status TrainingRun::make_room(const plan::PlannedKnobs& planned) {
  RETURN_IF_ERROR(plan::check_drive_room(planned.run, state_files(), &plan_));
  return store_->reserve(planned.run.device_map);
}

Status TrainingRun::apply(const plan::PlannedKnobs& planned) {
  RETURN_IF_ERROR(store_->reserve(planned.run.device_map));
  // What was is given back before what will be is taken: both at once may not fit.
  std::vector<float> residual;
  if (assembly_->memory().has_compress()) residual = compression().take_residual();
  step_context_.reset();
  shards_.reset();
  activations_.reset();
  RETURN_IF_ERROR(engine_->register_buffers({}));
  assembly_.reset();
  const bool level_changes = planned.run.config.record != plan_.config.record;
  const auto what_is_kept = [](const settings::ArithmeticConfig& config) {
    return std::tuple(config.activations, config.activation_buffer_bytes,
                      config.activation_host_bytes);
  };
  const bool activations_change =
      what_is_kept(planned.run.config.arithmetic) != what_is_kept(plan_.config.arithmetic);
  // The platform stays where it is: the clock refers to it.
  plan_.config = planned.run.config;
  plan_.options = planned.run.options;
  plan_.device_map = planned.run.device_map;
  plan_.activations = planned.run.activations;
  plan_.layer_costs = planned.run.layer_costs;
  model_memory_ = planned.model;
  memory_plan_ = planned.memory;
  if (activations_change) {
    RETURN_IF_ERROR(built_.model->choose_activations(plan_.config.arithmetic.activations));
  }
  executor_->set_lanes(lanes_of(plan_.config.storage));
  RETURN_IF_ERROR(take_offload());
  RETURN_IF_ERROR(attach_offload());
  if (plan_.options.has_feedback() && plan_.options.selects_on_host() && !residual.empty()) {
    compression().set_residual(std::move(residual));
  }
  if (recording_ && level_changes) recording_->set_level(plan_.config.record, "user");
  // The files of the parameters are new.
  return plan_.options.streams_parameters() ? runtime_->run(offload().load_parameters())
                                            : ok_status();
}

// In host memory, or where gradients are worked on.
offload::ResidualPlace TrainingRun::residual() {
  if (plan_.options.selects_on_host()) {
    return offload::residual_in_memory(compression().residual());
  }
  const auto staging = std::make_shared<io::PinnedBuffer>();
  const auto staged = [this, staging](std::size_t count) -> Result<std::span<float>> {
    if (staging->bytes().empty()) {
      ASSIGN_OR_RETURN(*staging, pinned_memory_->allocate(offload::kResidualPieceElements * 4));
    }
    return std::span(reinterpret_cast<float*>(staging->bytes().data()), count);
  };
  return {.element_count = plan_.geometry.parameter_count,
          .read = [this, staged](std::int64_t first, std::span<float> piece) -> Status {
            ASSIGN_OR_RETURN(const std::span<float> from, staged(piece.size()));
            RETURN_IF_ERROR(
                bring_residual(platform::Direction::read, first, std::as_writable_bytes(from)));
            std::ranges::copy(from, piece.begin());
            return ok_status();
          },
          .write = [this, staged](std::int64_t first, std::span<const float> piece) -> Status {
            ASSIGN_OR_RETURN(const std::span<float> into, staged(piece.size()));
            std::ranges::copy(piece, into.begin());
            return bring_residual(platform::Direction::write, first, std::as_writable_bytes(into));
          }};
}

Status TrainingRun::bring_residual(platform::Direction direction, std::int64_t first,
                                   std::span<std::byte> staging) {
  return runtime_->run(train::bring_residual(*step_context_, direction,
                                             {first * 4, std::ssize(staging)}, staging.data()));
}

// What is selected on an accelerator follows the knobs; its residual stays there.
Status TrainingRun::prepare_gradient_work() {
  if (!plan_.options.works_on_accelerator()) return ok_status();
  return built_.device->gradients().prepare(
      offload::device_selection(plan_.options, plan_.share.state, plan_.geometry));
}

std::string TrainingRun::residual_path() const {
  return (fs::path(plan_.config.files.state_directory) / offload::kResidualFileName).string();
}

Result<KeptSnapshot> TrainingRun::save_snapshot() {
  const std::int64_t step = store_->committed().position.step;
  KeptSnapshot kept;
  kept.path = (fs::path(plan_.config.files.output) / "snapshots" / fmt::format("step-{:06}", step))
                  .string();
  RETURN_IF_ERROR(make_folder(fs::path(kept.path).parent_path().string()));
  ASSIGN_OR_RETURN(
      kept.saved,
      state::save_snapshot(
          *store_, {kept.path, plan_.config.storage.durability, plan_.config.storage.caching},
          [&](const std::string& folder) -> Status {
            state::StateStore::Options there = state_options();
            there.directory = folder;
            if (history_) RETURN_IF_ERROR(history_->save(there));
            if (!plan_.options.has_feedback()) return ok_status();
            return offload::save_residual((fs::path(folder) / offload::kResidualFileName).string(),
                                          step, residual());
          },
          // All ranks keep theirs or none does.
          ranks_ == nullptr ? stops_ : Stops()));
  return kept;
}

Status TrainingRun::keep_residual() {
  if (plan_.options.has_feedback()) {
    return offload::save_residual(residual_path(), store_->committed().position.step, residual());
  }
  // The file, if there is one, is of earlier steps: after this one nothing is left to send.
  std::error_code error;
  return fs::exists(residual_path(), error) ? keep_no_residual() : ok_status();
}

Status TrainingRun::keep_no_residual() {
  return offload::save_residual(residual_path(), store_->committed().position.step,
                                offload::ResidualPlace{});
}

Status TrainingRun::load_residual() {
  if (!plan_.options.has_feedback()) return ok_status();
  const std::int64_t step = store_->committed().position.step;
  if (resharded_.drops_residual) {
    log_warning(fmt::format(
        "the state was kept by other ranks, {}, and their residual of error feedback is not handed "
        "on: it begins with zeros after step {}, so the losses are not those of a run that went "
        "through with the same ranks",
        resharded_.from, step));
  }
  ASSIGN_OR_RETURN(const bool loaded, offload::load_residual(residual_path(), step, residual()));
  if (!loaded) {
    log_warning(fmt::format(
        "there is no residual of step {} (the run was killed): error feedback begins with zeros, "
        "so the losses are not those of a run that went through",
        step));
  }
  std::error_code error;
  return fs::exists(residual_path(), error) ? ok_status() : keep_no_residual();
}

// Before the first commit: no state that holds something is without.
Status TrainingRun::begin_recipe() {
  history_ = RecipeHistory::from(recipe_, 0);
  return history_->save(state_options());
}

Status TrainingRun::go_on_with_recipe() {
  if (history_) return keep_recipe(config());
  const std::int64_t step = store_->committed().position.step;
  if (ranks_ == nullptr || ranks_->is_first()) {
    log_warning(fmt::format(
        "{}: nothing is recorded of the text and the settings that it was made with, so they are "
        "not compared with this run's; from step {} on they are recorded",
        plan_.config.files.state_directory, step + 1));
  }
  history_ = RecipeHistory::from(recipe_, step);
  return history_->save(state_options());
}

Status TrainingRun::keep_recipe(const settings::RunConfig& in_force) {
  recipe_ = recipe_of(in_force, plan_.shape, text_);
  const bool has_changed = history_->go_on(recipe_, store_->committed().position.step);
  return has_changed ? history_->save(state_options()) : ok_status();
}

Status TrainingRun::prepare(StartFrom start) {
  offload().end_if(stops_);
  Status prepared = prepare_state(start);
  offload().end_if({});  // steps load as well
  return prepared;
}

Status TrainingRun::prepare_state(StartFrom start) {
  if (start == StartFrom::last_commit) {
    RETURN_IF_ERROR(load_residual());
    RETURN_IF_ERROR(go_on_with_recipe());
    RETURN_IF_ERROR(runtime_->run(offload().load_parameters()));
    return share_parameters();
  }
  RETURN_IF_ERROR(begin_recipe());
  std::error_code ignored;
  fs::remove(residual_path(), ignored);  // of the state that this one replaces
  const auto seed = static_cast<std::uint64_t>(plan_.config.schedule.seed);
  const offload::FillInitial fill = [this, seed](std::int64_t first, std::span<float> out) {
    shard::fill_initial(plan_.layout, plan_.share.state, seed, first, out);
  };
  state::TrainingPosition position;
  position.seed = seed;
  position.loss_scale = plan_.config.arithmetic.precision == Float16Kind::fp16
                            ? plan_.config.loss_scale.initial
                            : 1.0;
  RETURN_IF_ERROR(runtime_->run(offload().create_state(fill, position)));
  RETURN_IF_ERROR(share_parameters());
  return plan_.options.has_feedback() ? keep_no_residual() : ok_status();
}

}  // namespace sluice::train
