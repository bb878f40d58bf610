// How a session's run is opened: planned, its state begun or gone on with, its record.

#include "core/offload/assembly.h"
#include "core/session/format_change.h"
#include "core/session/knob_changes.h"
#include "core/session/live_control.h"
#include "core/session/note_box.h"
#include "core/session/open_run.h"
#include "core/session/open_run_request.h"
#include "core/session/run_recording.h"
#include "core/session/run_state.h"
#include "core/session/session_plan.h"
#include "core/session/session_schedule.h"
#include "core/session/session_settings.h"
#include "storage/state/return_to.h"

namespace sluice::session {

Status Session::Schedule::open_all() {
  StartFrom start = StartFrom::new_state;
  ASSIGN_OR_RETURN(OpenRunRequest planned, plan_all(start));
  ASSIGN_OR_RETURN(run_, OpenRun::open(std::move(planned)));
  RETURN_IF_ERROR(open_state(start));
  RETURN_IF_ERROR(run_->attach());
  RETURN_IF_ERROR(open_record(start));
  if (start == StartFrom::last_commit) {
    if (run_->plan().options.has_feedback()) {
      RETURN_IF_ERROR(run_->state().load_residual(run_->assembly().residual_in_memory(), ""));
    }
    RETURN_IF_ERROR(run_->state().go_on_with_recipe(recipe_, true));
    RETURN_IF_ERROR(run_->load_parameters({}));
  } else {
    state::TrainingPosition position;
    position.seed = static_cast<std::uint64_t>(run_->plan().config.schedule.seed);
    position.step = request_.initial_step;
    position.optimizer_step = request_.initial_updates;
    const offload::FillInitial fill = [this](std::int32_t variable, std::int64_t first,
                                             std::span<float> out) {
      tensors_.fill(static_cast<std::size_t>(variable), first, out);
      return ok_status();
    };
    RETURN_IF_ERROR(run_->begin(recipe_, fill, position, {}));
  }
  tensors_.fill_frozen(run_->plan().options.parameter_kind);
  position_ = run_->state().store().committed().position;
  step_ = position_.step;
  recording_->add_observers(hooks_);
  if (live_) {
    hooks_.observers.push_back(live_.get());
    hooks_.requests.push_back(live_.get());
  }
  knobs_ = std::make_unique<KnobChanges>(static_cast<Tunable&>(*this), run_->plan().config, hooks_,
                                         std::span<const PlannedChange>());
  ASSIGN_OR_RETURN(notes_, NoteBox::make(run_->runtime()));
  return ok_status();
}

Result<OpenRunRequest> Session::Schedule::plan_all(StartFrom& start) {
  OpenRunRequest planned;
  ASSIGN_OR_RETURN(planned.plan, run_plan_of(request_, tensors_));
  const settings::RunConfig& config = planned.plan.config;
  recipe_ = recipe_of(config, tensors_, request_.groups);
  const std::string& directory = config.files.state_directory;
  ASSIGN_OR_RETURN(start, start_of(directory));
  if (request_.begins_anew) start = StartFrom::new_state;
  if (start == StartFrom::last_commit) {
    ASSIGN_OR_RETURN(planned.history, RecipeHistory::load(directory));
    const auto other = planned.history ? planned.history->other_origin(recipe_) : std::nullopt;
    if (other) return other_origin_error(directory, *other);
  }
  ASSIGN_OR_RETURN(planned.memory, memory_of(planned.plan, tensors_));
  ASSIGN_OR_RETURN(recording_, RunRecording::prepare(config));
  planned.recorder = recording_->recorder();
  return planned;
}

Status Session::Schedule::open_state(StartFrom start) {
  RETURN_IF_ERROR(make_folder(run_->plan().config.files.output));
  RunState& state = run_->state();
  if (start == StartFrom::new_state) {
    if (!request_.from) return state.create(request_.begins_anew);
    return make_error(ErrorCode::not_found,
                      "{}: there is no state whose step {} could be gone on from",
                      run_->plan().config.files.state_directory, request_.from->step);
  }
  const settings::RunConfig& config = run_->plan().config;
  RETURN_IF_ERROR(change_format(
      run_->plan(),
      {config.files.state_directory, config.storage.durability, config.storage.caching},
      state.identity(), {}));
  RETURN_IF_ERROR(state.open(false));
  RETURN_IF_ERROR(state.check_found());
  if (request_.from) {
    const state::CommitId id{request_.from->step, request_.from->version};
    RETURN_IF_ERROR(state.go_back([&id](const auto& options) {
      return id.version.empty() ? state::return_to(options, id.step)
                                : state::return_to_kept(options, id);
    }));
  }
  return state.take_over(recipe_);
}

Status Session::Schedule::open_record(StartFrom start) {
  RunRecording::Facts facts{.start = start};
  facts.hardware.devices = run_->device_description();
  facts.meta.push_back({"tensors", tensors_text(request_.tensors)});
  RETURN_IF_ERROR(recording_->open(*run_, facts));
  live_ = LiveControl::start_or_warn(
      *this, [recording = recording_.get()](bool watched) { recording->set_watched(watched); },
      recording_->recorder());
  return ok_status();
}

}  // namespace sluice::session
