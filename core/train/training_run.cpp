#include "core/train/training_run.h"

#include <filesystem>

#include "core/offload/offload.h"
#include "core/plan/knob_change.h"
#include "core/plan/model_options.h"
#include "core/runtime/recording.h"
#include "core/session/format_change.h"
#include "core/session/open_run.h"
#include "core/session/open_run_request.h"
#include "core/session/run_clock.h"
#include "core/session/run_facts.h"
#include "core/session/run_state.h"
#include "core/train/base_weights.h"
#include "core/train/ranks.h"
#include "core/train/run_start.h"
#include "core/train/step_parts.h"
#include "core/train/training_recipe.h"
#include "core/weights/checkpoint.h"
#include "core/weights/kept_model.h"
#include "storage/state/return_to.h"

namespace sluice::train {
namespace {

namespace fs = std::filesystem;
using session::OpenRun;
using session::OpenRunRequest;
using session::StartFrom;

Status status_of(const auto& result) { return result.ok() ? ok_status() : Status(result.error()); }

}  // namespace

Result<std::unique_ptr<TrainingRun>> TrainingRun::open(const Request& request) {
  std::unique_ptr<TrainingRun> run(new TrainingRun());
  run->ranks_ = request.ranks;
  run->stops_ = request.stops;
  ASSIGN_OR_RETURN(OpenRunRequest planned, run->plan_all(request));
  if (request.on_plan) {
    request.on_plan(planned.memory.host);
    if (planned.memory.accelerator) request.on_plan(*planned.memory.accelerator);
  }
  RETURN_IF_ERROR(run->take_base_by_layer(planned));
  ASSIGN_OR_RETURN(run->session_, OpenRun::open(std::move(planned)));
  RETURN_IF_ERROR(run->open_text());  // from here on files are written
  RETURN_IF_ERROR(run->open_state(request.start));
  RETURN_IF_ERROR(run->open_model(*request.factory));
  RETURN_IF_ERROR(run->session_->attach());
  RETURN_IF_ERROR(run->make_step_parts());
  return run;
}

// Whoever leaves with an error may leave a step that is still being written.
TrainingRun::~TrainingRun() {
  if (step_ == nullptr) return;
  const Status settled = settle();
  static_cast<void>(settled);  // the error that is being told comes first
}

// An error of one rank ends all of them; and all train the same.
Result<OpenRunRequest> TrainingRun::plan_all(const Request& request) {
  Result<OpenRunRequest> planned = plan_own(request);
  RETURN_IF_ERROR(agreed_to_begin(status_of(planned)));
  if (ranks_ != nullptr) RETURN_IF_ERROR(agreed_to_begin(check_same_on_ranks(*ranks_, recipe_)));
  if (request.start == StartFrom::last_commit) {
    auto history = found_history(planned->plan.config.files, recipe_);
    RETURN_IF_ERROR(agreed_to_begin(status_of(history)));
    planned->history = *std::move(history);
  }
  return planned;
}

// All that this rank's settings, and the files that they name, may be refused for.
Result<OpenRunRequest> TrainingRun::plan_own(const Request& request) {
  RETURN_IF_ERROR(check_model(request.config->files));
  OpenRunRequest planned;
  ASSIGN_OR_RETURN(planned.plan, plan::plan_run(*request.config));
  plan::RunPlan& plan = planned.plan;
  if (plan.config.clock.kind == settings::ClockKind::real) {
    ASSIGN_OR_RETURN(plan.platform, plan::with_real_accelerator(plan.platform, plan.config));
  } else if (ranks_ != nullptr) {
    RETURN_IF_ERROR(ranks_->charge(plan.platform, ranks_->count(), plan.share));
  }
  ASSIGN_OR_RETURN(text_,
                   TrainingText::look_at(plan.config, plan.shape, request.start, request.stops));
  recipe_ = recipe_of(plan.config, plan.shape, text_.facts());
  RETURN_IF_ERROR(check_start(plan.config.files, request.start, ranks_ == nullptr));
  // A state that there is has its weights, and where they came from may be gone.
  if (request.start == StartFrom::new_state) {
    ASSIGN_OR_RETURN(origin_, RunOrigin::of_new_state(plan));
    for (session::Fact& fact : origin_.facts()) recipe_.push_back(std::move(fact));
  }
  if (plan.shape.has_adapters()) {
    ASSIGN_OR_RETURN(origin_.base, find_base(plan));
    ASSIGN_OR_RETURN(session::Fact base, base_fact(*origin_.base));
    recipe_.push_back(std::move(base));
  }
  const model::ModelFactory& factory = *request.factory;
  ASSIGN_OR_RETURN(planned.memory,
                   session::plan_run_memory(plan, [factory](const plan::RunPlan& run) {
                     return plan::model_memory(factory, run);
                   }));
  planned.pinned_memory = factory.pinned;
  planned.recorder = request.recorder;
  planned.devices = request.devices;
  planned.wrap_engine = request.wrap_engine;
  if (ranks_ != nullptr) {
    planned.committed_elsewhere = [ranks = ranks_](runtime::Runtime& runtime, std::int32_t step) {
      return ranks->all_committed(runtime, step);
    };
  }
  return planned;
}

Status TrainingRun::agreed_to_begin(const Status& mine) {
  return ranks_ == nullptr ? mine : ranks_->agreed_or_end(mine, "start of the run");
}

// All ranks have one.
std::string TrainingRun::run_folder() const {
  const fs::path output(config().files.output);
  return (ranks_ == nullptr ? output : output.parent_path()).string();
}

Status TrainingRun::open_text() {
  RETURN_IF_ERROR(session::make_folder(config().files.output));
  return text_.open(config(), run_folder(), stops_);
}

// The model is kept once the folder is this run's for certain.
Status TrainingRun::open_state(StartFrom start) {
  if (start != StartFrom::new_state) return go_on_with_state();
  RETURN_IF_ERROR(session_->state().create());
  if (ranks_ != nullptr && !ranks_->is_first()) return ok_status();
  return weights::keep_model(run_folder(), config().files.model, plan().shape);
}

// The state of a run of one rank; one that many ranks have kept is written anew anyhow.
Result<std::optional<StateFormat>> TrainingRun::change_own_format() {
  const state::StateStore::Options options{config().files.state_directory,
                                           config().storage.durability, config().storage.caching};
  RETURN_IF_ERROR(session::finish_format_change(options));
  if (!state::StateStore::exists(options.directory)) return std::optional<StateFormat>();
  const auto found = state::StateStore::open_read_only(options);
  // Never committed: others may have one.
  if (!found.ok() && found.error().code() == ErrorCode::not_found) {
    return std::optional<StateFormat>();
  }
  if (!found.ok()) return found.error();
  // A part of one, which is made whole and written anew.
  if (!(*found)->identity().share.is_whole()) return std::optional<StateFormat>();
  return session::change_format(plan(), options, session_->state().identity(), stops_);
}

// At the newest step that all ranks have.
Status TrainingRun::go_on_with_state() {
  session::RunState& state = session_->state();
  if (ranks_ == nullptr) {
    ASSIGN_OR_RETURN(origin_.format_before, change_own_format());
  }
  ASSIGN_OR_RETURN(origin_.resharded, reshard(plan(), state.identity(), ranks_, stops_));
  RETURN_IF_ERROR(state.open(origin_.resharded.has_changed));
  if (ranks_ != nullptr) {
    ASSIGN_OR_RETURN(const std::int64_t common, ranks_->last_common_step(state.step()));
    RETURN_IF_ERROR(
        state.go_back([common](const auto& options) { return state::return_to(options, common); }));
  }
  RETURN_IF_ERROR(agreed_to_begin(state.check_found()));
  return state.take_over(recipe_);
}

Status TrainingRun::open_model(const model::ModelFactory& factory) {
  if (plan().share.is_sharded()) {
    ASSIGN_OR_RETURN(shard_groups_, ranks_->make_shard_groups(plan().share));
  }
  model::ModelOptions options = plan::model_options(config());
  RETURN_IF_ERROR(read_base());
  if (base_ != nullptr) options.base = base_->span();
  ASSIGN_OR_RETURN(built_, factory.make(plan().shape, options, session_->parameters()));
  runtime::RecordingSink* const recording = session_->clock().recording();
  if (recording != nullptr && built_.device != nullptr) {
    recording->watch_accelerator_memory(
        [device = built_.device.get()] { return device->memory_use().now_bytes; });
  }
  return ok_status();
}

Status TrainingRun::take_base_by_layer(OpenRunRequest& planned) {
  if (!planned.plan.base) return ok_status();
  ASSIGN_OR_RETURN(BaseWeights base, BaseWeights::by_layer(planned.plan));
  base_ = std::make_unique<BaseWeights>(std::move(base));
  planned.base = base_->span();
  return ok_status();
}

Status TrainingRun::read_base() {
  if (origin_.base == nullptr || base_ != nullptr) return ok_status();
  ASSIGN_OR_RETURN(BaseWeights base, BaseWeights::read(*origin_.base, plan(), stops_));
  base_ = std::make_unique<BaseWeights>(std::move(base));
  return ok_status();
}

Status TrainingRun::write_base() {
  if (!plan().base) return ok_status();
  const offload::FillInitial fill = [&base = *origin_.base](
                                        std::int32_t /*variable*/, std::int64_t first,
                                        std::span<float> out) { return base.fill(first, out); };
  return session_->runtime().run(session_->offload().write_base(fill, stops_));
}

Status TrainingRun::make_step_parts() {
  ASSIGN_OR_RETURN(step_, StepParts::make({*session_, built_, ranks_, shard_groups_.get()}));
  return ok_status();
}

const plan::RunPlan& TrainingRun::plan() const { return session_->plan(); }
const settings::RunConfig& TrainingRun::config() const { return plan().config; }
TimeNs TrainingRun::now_ns() { return session_->runtime().now_ns(); }

session::RunHardware TrainingRun::hardware() const {
  session::RunHardware hardware;
  hardware.devices = session_->device_description();
  if (built_.device != nullptr) hardware.computes = built_.device->description();
  if (ranks_ != nullptr) hardware.ranks = ranks_->scope();
  return hardware;
}

// Also where the offload has failed: what is under way among the ranks uses the run's memory.
Status TrainingRun::settle() {
  const Status settled = session_->settle();
  const Status shared = step_->settle();
  return settled.ok() ? shared : settled;
}

Status TrainingRun::commit() {
  RETURN_IF_ERROR(session_->commit());
  return step_->settle();
}

Status TrainingRun::prepare(StartFrom start) {
  session::RunState& state = session_->state();
  if (start == StartFrom::last_commit) {
    RETURN_IF_ERROR(state.load_residual(
        step_->residual(), origin_.resharded.drops_residual ? origin_.resharded.from : ""));
    RETURN_IF_ERROR(state.go_on_with_recipe(recipe_, ranks_ == nullptr || ranks_->is_first()));
    RETURN_IF_ERROR(session_->load_parameters(stops_));
    RETURN_IF_ERROR(write_base());
    return step_->share_parameters();
  }
  state::TrainingPosition position = first_position(config());
  position.optimizer_step = origin_.optimizer_step();
  RETURN_IF_ERROR(session_->begin(recipe_, origin_.fill(plan()), position, stops_));
  RETURN_IF_ERROR(write_base());
  return step_->share_parameters();
}

Result<session::KeptSnapshot> TrainingRun::save_snapshot() {
  // All ranks keep theirs or none does.
  const Stops stops = ranks_ == nullptr ? stops_ : Stops();
  return session_->state().save_snapshot(step_->residual(), stops);
}

plan::LivePlan TrainingRun::live_plan() const {
  return {plan(), session_->memory().model_of, session_->state().files(),
          session_->clock().recording() != nullptr, built_.model->kept_blocks() != nullptr};
}

Status TrainingRun::make_room(const plan::PlannedKnobs& planned) {
  return session_->state().make_room(planned);
}

Status TrainingRun::apply(const plan::PlannedKnobs& planned) {
  if (!plan::needs_new_offload(plan(), planned.run)) {
    session_->turn(planned);
    return ok_status();
  }
  const bool activations_change = plan::moves_other_activations(config(), planned.run.config);
  step_.reset();
  const auto choose_activations = [&] {
    return activations_change ? built_.model->choose_activations(config().arithmetic.activations)
                              : ok_status();
  };
  RETURN_IF_ERROR(session_->apply(planned, choose_activations));
  RETURN_IF_ERROR(write_base());
  return make_step_parts();
}

Status TrainingRun::keep_recipe(const settings::RunConfig& in_force) {
  recipe_ = recipe_of(in_force, plan().shape, text_.facts());
  return session_->state().keep_recipe(recipe_);
}

Status TrainingRun::agreed(const Status& mine) {
  return ranks_ == nullptr ? mine : ranks_->agreed(mine, "change of knobs");
}

}  // namespace sluice::train
