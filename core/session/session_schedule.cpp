#include "core/session/session_schedule.h"

#include <algorithm>
#include <cmath>

#include "core/offload/assembly.h"
#include "core/offload/offload.h"
#include "core/offload/parameter_carrier.h"
#include "core/offload/speculation.h"
#include "core/offload/step_gradients.h"
#include "core/plan/knob_change.h"
#include "core/plan/lr_schedule.h"
#include "core/runtime/operation.h"
#include "core/runtime/runtime.h"
#include "core/session/knob_changes.h"
#include "core/session/live_control.h"
#include "core/session/note_box.h"
#include "core/session/open_run.h"
#include "core/session/program_change.h"
#include "core/session/program_recording.h"
#include "core/session/run_clock.h"
#include "core/session/run_memory.h"
#include "core/session/run_recording.h"
#include "core/session/run_state.h"
#include "core/session/session_settings.h"
#include "core/session/session_step.h"
#include "core/session/step_ahead.h"
#include "core/session/step_decision.h"

namespace sluice::session {
namespace {

optimizer::UpdateOptions with_rates(optimizer::UpdateOptions update, const GroupRates& rates) {
  update.lr = rates.lr.value_or(update.lr);
  update.weight_decay = rates.weight_decay.value_or(update.weight_decay);
  update.beta1 = rates.beta1.value_or(update.beta1);
  update.beta2 = rates.beta2.value_or(update.beta2);
  update.momentum = rates.momentum.value_or(update.momentum);
  update.eps = rates.eps.value_or(update.eps);
  return update;
}

bool is_of_tensor(Note::Kind kind) {
  return kind == Note::Kind::gradient || kind == Note::Kind::read || kind == Note::Kind::replace ||
         kind == Note::Kind::wait || kind == Note::Kind::copied;
}

}  // namespace

Result<std::unique_ptr<Session::Schedule>> Session::Schedule::open(const Request& request) {
  std::unique_ptr<Schedule> schedule(new Schedule(request));
  Ticket opened;
  schedule->thread_ = std::thread([&opened, schedule = schedule.get()] { schedule->run(opened); });
  RETURN_IF_ERROR(opened.wait());
  return schedule;
}

Session::Schedule::Schedule(const Request& request)
    : request_(request), ahead_(std::make_unique<StepAhead>()) {}

Session::Schedule::~Schedule() {
  const Status closed = close();
  static_cast<void>(closed);
}

Status Session::Schedule::close() {
  if (!thread_.joinable()) return ended_;
  if (notes_ != nullptr) notes_->close();
  thread_.join();
  return ended_;
}

Status Session::Schedule::ask(Note note) {
  if (is_of_tensor(note.kind) && note.tensor >= request_.tensors.size()) {
    return make_error(ErrorCode::config, "tensor {}: the session has {}", note.tensor,
                      request_.tensors.size());
  }
  return notes_ != nullptr ? notes_->ask(note) : Status(session_is_over());
}

Status Session::Schedule::between(const char* what, const Work& work) {
  const std::function<Status()> on_run = [&] { return work(*run_); };
  return ask({.kind = Note::Kind::between, .action = &on_run, .what = what});
}

Status Session::Schedule::at_once(const Work& work) {
  const std::function<Status()> on_run = [&] { return work(*run_); };
  return ask({.kind = Note::Kind::look, .action = &on_run});
}

ParameterSpan Session::Schedule::parameters(std::size_t tensor) const {
  const LayerId layer = tensors_.layer(tensor);
  if (layer == kNoLayer) return tensors_.frozen_parameters(tensor);
  const model::TensorInfo& info = tensors_.layout().tensors.at(index_of(layer));
  return run_->parameters().subspan(info.first, info.count);
}

bool Session::Schedule::streams_parameters() const {
  return run_->plan().options.streams_parameters();
}

std::int64_t Session::Schedule::planned_memory_bytes() const {
  return run_->memory().host.total_bytes;
}

// All of the run is opened, used and closed on this thread.
void Session::Schedule::run(Ticket& opened) {
  const Status open = open_all();
  const bool is_open = open.ok();
  if (is_open) {
    under_way_ = std::make_unique<SessionStep>(run_->runtime(), tensors_.layout().layers.size());
    under_way_->before_end_ns = now_ns();
  }
  if (!is_open) ended_ = open;
  opened.answer(open);  // from here on `opened` may be gone
  if (!is_open) return;
  ended_ = end(take_steps());
}

Status Session::Schedule::take_steps() {
  while (true) {
    ASSIGN_OR_RETURN(const std::optional<Note> first, first_gradient());
    if (!first) return ok_status();
    if (first->kind == Note::Kind::between) {
      RETURN_IF_ERROR(do_between(*first));
      continue;
    }
    // As late as can be: what was asked while the program computed counts for this step.
    RETURN_IF_ERROR(between_steps());
    std::optional<Note> asked;
    RETURN_IF_ERROR(run_->runtime().run(collect(*first, asked)));
    if (!asked) return ok_status();
    const Status taken = take_step(*asked);
    notes_->answer(*asked, taken);
    RETURN_IF_ERROR(taken);
  }
}

// An action that cannot be done is no reason to end the session; a commit that fails is, and a
// change of knobs that fails halfway.
Status Session::Schedule::do_between(const Note& note) {
  Status served = commit();
  Status outcome = ok_status();
  if (served.ok() && note.settings != nullptr) {
    served = change_knobs(*note.settings, outcome);
  } else if (served.ok()) {
    outcome = (*note.action)();
  }
  notes_->answer(note, served.ok() ? outcome : served);
  return served;
}

Status Session::Schedule::change_knobs(const std::vector<std::string>& settings, Status& outcome) {
  tell_step();  // before the knobs of the next one
  ProgramChange change(settings);
  hooks_.observers.push_back(&change);
  hooks_.requests.push_back(&change);
  Status served = knobs_->before_step(position_.step);
  hooks_.observers.pop_back();
  hooks_.requests.pop_back();
  outcome = change.outcome();
  return served;
}

// Or an action that is asked for before it. Answers all that comes before; none: the session is
// closed.
Result<std::optional<Note>> Session::Schedule::first_gradient() {
  std::optional<Note> first;
  RETURN_IF_ERROR(run_->runtime().run(take_until_gradient(first)));
  return first;
}

// The last update has read its gradients by then, and those to come may take their place.
runtime::Task<Status> Session::Schedule::take_until_gradient(std::optional<Note>& first) {
  std::optional<Note> too_early;
  while (!first) {
    Result<std::optional<Note>> next = co_await notes_->next();
    CO_RETURN_IF_ERROR(next);
    if (!*next) break;
    const bool is_gradient = (*next)->kind == Note::Kind::gradient && check_gradient(**next).ok();
    if (is_gradient || (*next)->kind == Note::Kind::between) {
      first = **next;
    } else {
      take_note(**next, too_early);
    }
  }
  Status waited = co_await end_waits();
  CO_RETURN_IF_ERROR(waited);
  Status updated = co_await run_->offload().parameters().updated();
  co_return updated;
}

// A snapshot that cannot be kept is no reason to end the run.
Status Session::Schedule::between_steps() {
  tell_step();
  if (live_ && live_->wants_snapshot()) {
    RETURN_IF_ERROR(commit());
    const Result<KeptSnapshot> kept = run_->state().save_snapshot(residual_of(*run_), {});
    for (RunObserver* observer : hooks_.observers) observer->on_snapshot(kept);
  }
  return knobs_->before_step(position_.step);
}

// Until a step is asked for that has all its gradients, or the session is closed.
runtime::Task<Status> Session::Schedule::collect(Note first, std::optional<Note>& asked) {
  take_note(first, asked);
  while (!asked) {
    Result<std::optional<Note>> next = co_await notes_->next();
    if (!next.ok() || !*next) break;
    if ((*next)->kind == Note::Kind::read || (*next)->kind == Note::Kind::replace) {
      Status sent = co_await at_sent(**next);
      CO_RETURN_IF_ERROR(sent);
    } else {
      take_note(**next, asked);
    }
  }
  Status sent = co_await under_way_->gradients.join();
  Status waited = co_await end_waits();
  if (!sent.ok()) co_return sent;
  co_return waited;
}

void Session::Schedule::take_note(const Note& note, std::optional<Note>& asked) {
  switch (note.kind) {
    case Note::Kind::wait: {
      const Status good = check_may_read(note);
      if (!good.ok()) return notes_->answer(note, good);
      return under_way_->waits.spawn(wait_for(note));
    }
    case Note::Kind::copied:
      return notes_->answer(note, note_copied(note));
    case Note::Kind::read:
    case Note::Kind::replace:  // before the first gradient
      return notes_->answer(note, check_sent(note));
    case Note::Kind::gradient: {
      const Status good = check_gradient(note);
      if (!good.ok()) return notes_->answer(note, good);
      under_way_->is_sent[static_cast<std::size_t>(index_of(tensors_.layer(note.tensor)))] = true;
      begin_step();
      return under_way_->gradients.spawn(take_gradient(note));
    }
    case Note::Kind::look:
      return notes_->answer(note, (*note.action)());
    case Note::Kind::between:  // within a step
      return notes_->answer(note, make_error(ErrorCode::config,
                                             "{} was asked for among the gradients of step {}; "
                                             "ask for it before the first of them",
                                             note.what, position_.step + 1));
    case Note::Kind::step: {
      const Status good = check_step(note);
      if (!good.ok()) return notes_->answer(note, good);
      asked = note;
    }
  }
}

Status Session::Schedule::check_gradient(const Note& note) const {
  RETURN_IF_ERROR(check_size(note, std::ssize(note.gradient)));
  if (!is_sent(note.tensor)) return ok_status();
  return make_error(ErrorCode::config, "the gradient of {} has come already for step {}",
                    request_.tensors[note.tensor].name, position_.step + 1);
}

Status Session::Schedule::check_size(const Note& note, std::int64_t size) const {
  const LayerId layer = tensors_.layer(note.tensor);
  const std::string& name = request_.tensors[note.tensor].name;
  if (layer == kNoLayer)
    return make_error(ErrorCode::config, "{} is frozen, and has no gradient", name);
  const std::int64_t count =
      tensors_.layout().tensors[static_cast<std::size_t>(index_of(layer))].count;
  if (size == count) return ok_status();
  return make_error(ErrorCode::config, "the gradient of {} has {} elements, and the tensor {}",
                    name, size, count);
}

bool Session::Schedule::is_sent(std::size_t tensor) const {
  return under_way_->is_sent[static_cast<std::size_t>(index_of(tensors_.layer(tensor)))];
}

Status Session::Schedule::check_sent(const Note& note) const {
  RETURN_IF_ERROR(check_size(
      note, note.kind == Note::Kind::read ? std::ssize(note.into) : std::ssize(note.gradient)));
  if (run_->plan().options.is_sparse()) {
    return make_error(ErrorCode::config,
                      "density={}: of a gradient that was sent the largest elements are there, so "
                      "it is neither read nor replaced; set density=1",
                      run_->plan().config.offload.density);
  }
  if (is_sent(note.tensor)) return ok_status();
  return make_error(ErrorCode::config, "the gradient of {} has not come yet for step {}",
                    request_.tensors[note.tensor].name, position_.step + 1);
}

// One at a time, behind all that was sent: a gradient is not written twice at once.
runtime::Task<Status> Session::Schedule::at_sent(const Note& note) {
  const Status good = check_sent(note);
  if (!good.ok()) {
    notes_->answer(note, good);
    co_return ok_status();
  }
  offload::StepGradients& gradients = run_->offload().gradients();
  Status copied = co_await under_way_->gradients.join();
  CO_RETURN_IF_ERROR(copied);
  Status sent = co_await gradients.sent();
  CO_RETURN_IF_ERROR(sent);
  if (note.kind == Note::Kind::replace) {
    under_way_->has_replaced = true;
    Status halted = co_await run_->offload().halt_ahead();
    CO_RETURN_IF_ERROR(halted);
  }
  const LayerId layer = tensors_.layer(note.tensor);
  Result<runtime::Pool::Lease> lease = co_await gradients.acquire(layer);
  CO_RETURN_IF_ERROR(lease);
  if (note.kind == Note::Kind::read) {
    Status read = co_await gradients.read_back(layer, *lease);
    CO_RETURN_IF_ERROR(read);
    std::copy_n(gradients.view(*lease, layer).values_fp32, note.into.size(), note.into.data());
  } else {
    Status taken = co_await copy_gradient(note, gradients.view(*lease, layer));
    CO_RETURN_IF_ERROR(taken);
    gradients.send_again(layer, std::move(*lease));
  }
  notes_->answer(note, ok_status());
  co_return ok_status();
}

// What an update before its decision has made of them is nobody's to read. A subgroup is updated
// when the gradients of all its tensors are down, so a tensor has its values until its own is sent.
// From the drives those that follow come with it.
Status Session::Schedule::check_may_read(const Note& note) const {
  const bool is_ahead =
      under_way_->has_begun && run_->plan().options.overlap == offload::Overlap::exact;
  if (!is_ahead || tensors_.layer(note.tensor) == kNoLayer) return ok_status();
  const std::string& name = request_.tensors[note.tensor].name;
  const std::int64_t step = position_.step + 1;
  if (streams_parameters()) {
    return make_error(ErrorCode::config,
                      "overlap=exact, parameter_tier=storage: gradients of step {} have been sent, "
                      "and its update may be writing parameters; read those of {} before the first "
                      "gradient, or behind the step",
                      step, name);
  }
  if (!is_sent(note.tensor)) return ok_status();
  return make_error(
      ErrorCode::config,
      "overlap=exact: the gradient of {} has been sent for step {}, whose update may "
      "have changed its parameters; read them before its gradient, or behind the step",
      name, step);
}

Status Session::Schedule::check_rates(const StepRequest& request) const {
  const std::size_t rates = request.groups.size();
  const std::size_t groups = std::max<std::size_t>(1, request_.groups.size());
  if (rates == 0 || rates == groups) return ok_status();
  return make_error(ErrorCode::config, "the step has rates of {} groups, and the session {}", rates,
                    groups);
}

Status Session::Schedule::expect(const StepRequest& request) {
  return at_once([&](OpenRun&) -> Status {
    RETURN_IF_ERROR(check_rates(request));
    if (under_way_->has_begun) {
      return make_error(ErrorCode::config,
                        "a gradient of step {} has been sent; say what it will be asked for before "
                        "the first of them",
                        position_.step + 1);
    }
    ahead_->expected = request;
    return ok_status();
  });
}

Status Session::Schedule::check_step(const Note& note) const {
  RETURN_IF_ERROR(check_rates(*note.step));
  const auto missing = std::ranges::find(under_way_->is_sent, false);
  if (missing == under_way_->is_sent.end()) return ok_status();
  const auto layer = static_cast<std::size_t>(missing - under_way_->is_sent.begin());
  return make_error(ErrorCode::config, "step {} has no gradient of {} yet", position_.step + 1,
                    tensors_.layout().tensors[layer].name);
}

void Session::Schedule::begin_step() {
  if (std::exchange(under_way_->has_begun, true)) return;
  under_way_->begin_ns = now_ns();
  run_->runtime().set_step(static_cast<std::int32_t>(position_.step));
  offload::UpdateAhead ahead =
      update_ahead(step_plan(ahead_->expected), run_->offload().options().overlap, 1);
  if (!ahead_->policy.speculates()) ahead.expected.reset();
  run_->offload().begin_step(static_cast<std::int32_t>(position_.step), 1, ahead);
}

// The program may use its memory again as soon as the copy is made.
runtime::Task<Status> Session::Schedule::take_gradient(Note note) {
  offload::StepGradients& gradients = run_->offload().gradients();
  const LayerId layer = tensors_.layer(note.tensor);
  Result<runtime::Pool::Lease> lease = co_await gradients.acquire(layer);
  CO_RETURN_IF_ERROR(lease);
  Status copied = co_await copy_gradient(note, gradients.view(*lease, layer));
  CO_RETURN_IF_ERROR(copied);
  notes_->answer(note, ok_status());
  gradients.send(layer, std::move(*lease));
  co_return ok_status();
}

runtime::Operation Session::Schedule::copy_gradient(const Note& note,
                                                    const model::LayerGradient& into) {
  runtime::Operation copy;
  copy.runtime = &run_->runtime();
  copy.label.stage = stages::Stage::take_gradient;
  copy.label.layer = tensors_.layer(note.tensor);
  copy.work.kind = runtime::WorkKind::function;
  copy.work.workers = runtime::Workers::compute;
  copy.work.function = [from = note.gradient, into] {
    std::ranges::copy(from, into.values_fp32);
    std::fill(into.values_fp32 + from.size(), into.values_fp32 + into.element_count, 0.0F);
    return ok_status();
  };
  return copy;
}

runtime::Task<Status> Session::Schedule::wait_for(Note note) {
  const LayerId layer = tensors_.layer(note.tensor);
  if (layer != kNoLayer) {
    Status there = co_await bring(layer);
    CO_RETURN_IF_ERROR(there);
  }
  notes_->answer(note, ok_status());
  co_return ok_status();
}

// From the drives, those that follow come with it, as far as the window goes.
runtime::Task<Status> Session::Schedule::bring(LayerId layer) {
  offload::ParameterCarrier& parameters = run_->offload().parameters();
  if (streams_parameters()) {
    if (under_way_->next_layer != layer) {
      Status finished = co_await parameters.finish_pass();
      CO_RETURN_IF_ERROR(finished);
      parameters.begin_forward_at(layer);
    }
    under_way_->next_layer = LayerId{index_of(layer) + 1};
  }
  Status there = co_await parameters.bring(layer);
  co_return there;
}

// Where a gradient came between, it is no longer on its way.
Status Session::Schedule::note_copied(const Note& note) {
  if (under_way_->next_layer) run_->offload().parameters().done(tensors_.layer(note.tensor));
  return ok_status();
}

// Nothing reads parameters behind it, and an update may change them.
runtime::Task<Status> Session::Schedule::end_waits() {
  Status waited = co_await under_way_->waits.join();
  CO_RETURN_IF_ERROR(waited);
  if (!under_way_->next_layer) co_return ok_status();
  under_way_->next_layer = std::nullopt;
  Status finished = co_await run_->offload().parameters().finish_pass();
  co_return finished;
}

StepPlan Session::Schedule::step_plan(const StepRequest& request) const {
  const settings::RunConfig& config = run_->plan().config;
  StepPlan plan;
  plan.position = position_;
  plan.update = config.update;
  plan.update.lr =
      request.lr.value_or(plan::learning_rate(plan::lr_schedule_of(config), position_.step));
  plan.gradient_factor = request.gradient_factor;
  plan.max_grad_norm = config.arithmetic.max_grad_norm;
  const std::vector<GroupRates>& rates = request.groups.empty() ? request_.groups : request.groups;
  // A single group is all subgroups.
  if (rates.size() == 1) plan.update = with_rates(plan.update, rates.front());
  for (std::size_t group = 0; group < tensors_.group_ends().size(); ++group) {
    plan.groups.push_back({tensors_.group_ends()[group], with_rates(plan.update, rates[group])});
  }
  return plan;
}

runtime::Task<Status> Session::Schedule::finish_step(const StepPlan& plan,
                                                     GradientSummary& gradients) {
  offload::Offload& offload = run_->offload();
  Status sent = co_await offload.gradients().sent();
  CO_RETURN_IF_ERROR(sent);
  const optimizer::GradientStats stats = offload.gradients().stats();
  gradients = {std::sqrt(stats.sum_of_squares), stats.finite};
  if (!gradients.finite) {
    Status refused = co_await offload.refuse_step();
    co_return refused;
  }
  Status updated = co_await offload.update(decide(plan, gradients, 1));
  CO_RETURN_IF_ERROR(updated);
  Status ended = co_await offload.end_step(position_after(plan, gradients));
  co_return ended;
}

// Before the position changes: what was expected is of the same one.
void Session::Schedule::note_ahead(const StepPlan& plan, const GradientSummary& gradients,
                                   StepDone& done) {
  const offload::StepDecision expected = expected_decision(step_plan(ahead_->expected), 1);
  ahead_->policy.on_decision(!under_way_->has_replaced && decide(plan, gradients, 1) == expected);
  done.ahead_count = run_->offload().speculation().ahead_count();
  done.refuted_count = run_->offload().speculation().refuted_count();
}

Status Session::Schedule::take_step(const Note& note) {
  const StepPlan plan = step_plan(*note.step);
  GradientSummary gradients;
  const TimeNs sent_ns = now_ns();
  RETURN_IF_ERROR(run_->runtime().run(finish_step(plan, gradients)));
  note_ahead(plan, gradients, *note.done);
  position_ = position_after(plan, gradients);
  SessionStep::Untold untold{report_of(plan, gradients, sent_ns), under_way_->before_end_ns};
  untold.report.loss = note.step->loss;
  untold.report.tokens = note.step->tokens;
  const TimeNs end_ns = untold.begin_ns + untold.report.total_ns;
  ahead_->expected = *note.step;
  under_way_ = std::make_unique<SessionStep>(run_->runtime(), tensors_.layout().layers.size());
  under_way_->before_end_ns = end_ns;
  under_way_->before = std::move(untold);
  if (!note.step->awaits_note) tell_step();
  step_ = position_.step;
  note.done->step = position_.step;
  note.done->grad_norm = gradients.norm;
  note.done->lr = plan.update.lr;
  note.done->is_stopping = live_ && live_->wants_stop();
  return ok_status();
}

// A step that was begun and not taken is dropped: with it go those since the last commit.
Status Session::Schedule::end(Status served) {
  const bool is_within_step = under_way_->has_begun;
  if (served.ok() && !is_within_step) {
    served = commit();
    if (served.ok()) served = run_->state().keep_residual(residual_of(*run_));
    if (served.ok()) served = run_->state().store().check_files();
  } else if (run_->has_offload()) {
    const Status drained = run_->runtime().run(run_->offload().drain());
    static_cast<void>(drained);  // the first failure is the one to tell
  }
  tell_step();
  if (knobs_ && served.ok()) knobs_->refuse_the_rest(position_.step);
  recording_->record_rest();
  if (live_) live_->close(served.ok() ? "the session has ended" : served.error().message());
  recording_->close();
  notes_->answer_rest(served);
  return served;
}

TimeNs Session::Schedule::now_ns() { return run_->runtime().now_ns(); }

Status Session::Schedule::commit() { return run_->commit(); }

plan::LivePlan Session::Schedule::live_plan() const {
  return {run_->plan(), run_->memory().model_of, run_->state().files(),
          run_->clock().recording() != nullptr, false};
}

// Before anything moves: a wish that cannot be is refused, and the run goes on.
Status Session::Schedule::make_room(const plan::PlannedKnobs& planned) {
  RETURN_IF_ERROR(check_goes_with_session(planned.run.config));
  return run_->state().make_room(planned);
}

Status Session::Schedule::apply(const plan::PlannedKnobs& planned) {
  if (plan::needs_new_offload(run_->plan(), planned.run)) {
    return run_->apply(planned, [] { return ok_status(); });
  }
  run_->turn(planned);
  return ok_status();
}

Status Session::Schedule::keep_recipe(const settings::RunConfig& in_force) {
  recipe_ = recipe_of(in_force, tensors_, request_.groups);
  return run_->state().keep_recipe(recipe_);
}

}  // namespace sluice::session
