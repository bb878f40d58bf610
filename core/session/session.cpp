#include "core/session/session.h"

#include "base/check.h"
#include "core/control/knob.h"
#include "core/plan/run_plan.h"
#include "core/session/note_box.h"
#include "core/session/open_run.h"
#include "core/session/session_schedule.h"

namespace sluice::session {

// No knob has turned yet, so the plan is nobody else's.
Session::Session(std::unique_ptr<Schedule> schedule)
    : schedule_(std::move(schedule)), planned_memory_bytes_(schedule_->planned_memory_bytes()) {}

Session::~Session() {
  const Status closed = close();
  static_cast<void>(closed);  // whoever wants to know calls close()
}

Result<std::unique_ptr<Session>> Session::open(const Request& request) {
  ASSIGN_OR_RETURN(std::unique_ptr<Schedule> schedule, Schedule::open(request));
  return std::unique_ptr<Session>(new Session(std::move(schedule)));
}

std::int64_t Session::step() const { return schedule_->step(); }

std::span<const std::uint16_t> Session::parameters(std::size_t tensor) const {
  const ParameterSpan found = schedule_->parameters(tensor);
  CHECK(has_16_bits(found.kind()) && "with precision=fp32 call parameters_fp32()");
  return found.values_16bit();
}

std::span<const float> Session::parameters_fp32(std::size_t tensor) const {
  const ParameterSpan found = schedule_->parameters(tensor);
  CHECK(!has_16_bits(found.kind()) && "with precision=bf16 or fp16 call parameters()");
  return found.values_fp32();
}

Status Session::wait(std::size_t tensor) {
  return schedule_->ask({.kind = Note::Kind::wait, .tensor = tensor});
}

Status Session::send(std::size_t tensor, std::span<const float> gradient) {
  return schedule_->ask({.kind = Note::Kind::gradient, .tensor = tensor, .gradient = gradient});
}

Status Session::read(std::size_t tensor, std::span<float> gradient) {
  return schedule_->ask({.kind = Note::Kind::read, .tensor = tensor, .into = gradient});
}

Status Session::replace(std::size_t tensor, std::span<const float> gradient) {
  return schedule_->ask({.kind = Note::Kind::replace, .tensor = tensor, .gradient = gradient});
}

Result<StepDone> Session::take_step(const StepRequest& request) {
  StepDone done;
  RETURN_IF_ERROR(schedule_->ask({.kind = Note::Kind::step, .step = &request, .done = &done}));
  return done;
}

Status Session::note(const StepNote& note) { return schedule_->note(note); }

void Session::record(const WorkSpan& span) { schedule_->record(span); }

void Session::count(std::string_view name, double value) { schedule_->count(name, value); }

Result<StepId> Session::commit() { return schedule_->commit_step(); }
Result<StepId> Session::keep(const std::string& keeper) { return schedule_->keep(keeper); }
Status Session::release(const StepId& id) { return schedule_->release(id); }
Result<std::vector<KeptStep>> Session::kept() { return schedule_->kept(); }

Status Session::set(const std::vector<std::string>& settings) {
  return schedule_->ask(
      {.kind = Note::Kind::between, .settings = &settings, .what = "a change of knobs"});
}

Result<std::vector<Knob>> Session::knobs() {
  std::vector<Knob> knobs;
  RETURN_IF_ERROR(schedule_->at_once([&](OpenRun& run) {
    for (control::Knob& knob : settings::knobs(run.plan().config)) {
      knobs.push_back({std::move(knob.key), std::move(knob.value), std::move(knob.values)});
    }
    return ok_status();
  }));
  return knobs;
}

Status Session::close() { return schedule_->close(); }

}  // namespace sluice::session
