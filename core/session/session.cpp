#include "core/session/session.h"

#include <cstring>

#include "base/check.h"
#include "core/control/knob.h"
#include "core/plan/run_plan.h"
#include "core/session/note_box.h"
#include "core/session/open_run.h"
#include "core/session/session_schedule.h"

namespace sluice::session {

// No knob has turned yet, so the plan is nobody else's.
Session::Session(std::unique_ptr<Schedule> schedule)
    : schedule_(std::move(schedule)),
      planned_memory_bytes_(schedule_->planned_memory_bytes()),
      streams_parameters_(schedule_->streams_parameters()) {}

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
  CHECK(!is_on_drives(tensor) && "with parameter_tier=storage call copy_parameters()");
  const ParameterSpan found = schedule_->parameters(tensor);
  CHECK(has_16_bits(found.kind()) && "with precision=fp32 call parameters_fp32()");
  return found.values_16bit();
}

std::span<const float> Session::parameters_fp32(std::size_t tensor) const {
  CHECK(!is_on_drives(tensor) && "with parameter_tier=storage call copy_parameters()");
  const ParameterSpan found = schedule_->parameters(tensor);
  CHECK(!has_16_bits(found.kind()) && "with precision=bf16 or fp16 call parameters()");
  return found.values_fp32();
}

bool Session::is_on_drives(std::size_t tensor) const {
  return streams_parameters_ && schedule_->tensors().layer(tensor) != kNoLayer;
}

Status Session::wait(std::size_t tensor) {
  if (tensor < schedule_->request().tensors.size() && is_on_drives(tensor)) {
    return make_error(ErrorCode::config,
                      "parameter_tier=storage: the parameters of {} are on the drives, and are had "
                      "by copy_parameters()",
                      schedule_->request().tensors[tensor].name);
  }
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

Status copy_parameters(Session& session, std::size_t tensor, const ParameterRoom& into) {
  Session::Schedule& schedule = *session.schedule_;
  const MutexLock lock(session.copying_);
  RETURN_IF_ERROR(schedule.ask({.kind = Note::Kind::wait, .tensor = tensor}));
  const ParameterSpan from = schedule.parameters(tensor);
  const bool is_fp32 = std::holds_alternative<std::span<float>>(into);
  const std::span<std::byte> room =
      std::visit([](auto values) { return std::as_writable_bytes(values); }, into);
  const bool fits = std::ssize(room) == from.size_bytes() && is_fp32 != has_16_bits(from.kind());
  if (fits) std::memcpy(room.data(), from.data(), room.size());
  if (session.is_on_drives(tensor))
    RETURN_IF_ERROR(schedule.ask({.kind = Note::Kind::copied, .tensor = tensor}));
  if (fits) return ok_status();
  return make_error(ErrorCode::config,
                    "the parameters of {} take {} bytes, {} each; {} are to be filled",
                    schedule.request().tensors[tensor].name, from.size_bytes(),
                    bytes_of(from.kind()), room.size());
}

Status expect_step(Session& session, const StepRequest& request) {
  return session.schedule_->expect(request);
}

Status Session::close() { return schedule_->close(); }

}  // namespace sluice::session
