#include "core/control/effect_watch.h"
#include "core/control/live_change.h"
#include "mcp/tool_groups.h"

namespace sluice::mcp {
namespace {

using control::ChangeEvent;
using control::Message;
using control::RequestKind;

constexpr std::int64_t kWatchStepsMost = 10'000;

Json event_json(const ChangeEvent& event) {
  return {{"state", control::change_state_name(event.state)},
          {"after_step", event.step},
          {"settings", event.settings},
          {"message", event.message}};
}

// What became of a change that was asked for, as far as the call's time goes: the run goes on with
// it, and reverts it, whether anybody waits or not.
Result<Answered> watched(control::ControlClient& client, std::int64_t change, bool has_rule,
                         const Stops& stops) {
  Answered answered;
  answered.data["state"] = "asked for";
  answered.data["events"] = Json::array();
  answered.why = "asked for, and not in force yet: it comes with the next step";
  for (int told = 0; told < (has_rule ? 2 : 1); ++told) {
    const Result<ChangeEvent> event = control::await_change(client, change, stops);
    if (!event.ok() && event.error().code() == ErrorCode::cancelled && stops()) return answered;
    if (!event.ok()) return event.error();
    answered.data["events"].push_back(event_json(*event));
    answered.data["state"] = control::change_state_name(event->state);
    answered.steps.push_back(event->step);
    answered.why = fmt::format("in force after step {}", event->step);
    if (event->state == control::ChangeState::kept) answered.why = "kept: " + event->message;
    if (event->state == control::ChangeState::reverted)
      answered.why = "reverted: " + event->message;
    if (has_rule && told == 0)
      answered.why += "; the run watches it, and puts the old values back where the rule is broken";
  }
  return answered;
}

Result<Answered> set_knob(const Arguments& arguments, const Call& call) {
  ASSIGN_OR_RETURN(const std::string database, database_at(arguments, call));
  control::SetRequest set;
  set.settings = arguments.texts("settings");
  set.who = call.who;
  set.revert_if = arguments.text("revert_if").value_or("");
  set.watch_steps = arguments.integer("watch_steps").value_or(0);
  if (set.settings.empty())
    return make_error(ErrorCode::config, "'settings' is empty: which knob? As in buffers=4");
  for (const std::string& setting : set.settings) {
    if (setting.find('=') == std::string::npos)
      return make_error(ErrorCode::config, "{}: expected key=value, as in buffers=4", setting);
  }
  ASSIGN_OR_RETURN(const auto client, control::connect_to_run(database));
  ASSIGN_OR_RETURN(const Message answer, control::ask_for_change(*client, set));
  return watched(*client, answer.change, !set.revert_if.empty(), call.stops);
}

Result<Answered> snapshot(const Arguments& arguments, const Call& call) {
  ASSIGN_OR_RETURN(const std::string database, database_at(arguments, call));
  ASSIGN_OR_RETURN(const auto client, control::connect_to_run(database));
  ASSIGN_OR_RETURN(const Message subscribed,
                   client->ask({.kind = RequestKind::subscribe}, control::kLiveAnswer));
  static_cast<void>(subscribed);
  ASSIGN_OR_RETURN(
      const Message answer,
      client->ask({.kind = RequestKind::snapshot, .who = call.who}, control::kLiveAnswer));
  Answered answered;
  answered.data["state"] = "asked for";
  answered.why = "asked for, and not kept yet: it comes with the next step";
  const Result<control::SnapshotEvent> kept =
      control::await_snapshot(*client, answer.snapshot, call.stops);
  if (!kept.ok() && kept.error().code() == ErrorCode::cancelled && call.stops()) return answered;
  if (!kept.ok()) return kept.error();
  answered.data = {{"state", "kept"},
                   {"after_step", kept->step},
                   {"path", kept->path},
                   {"bytes", kept->size_bytes}};
  answered.why = fmt::format("the state after step {} is kept", kept->step);
  return answered;
}

Result<Answered> stop(const Arguments& arguments, const Call& call) {
  ASSIGN_OR_RETURN(const std::string database, database_at(arguments, call));
  ASSIGN_OR_RETURN(const auto client, control::connect_to_run(database));
  ASSIGN_OR_RETURN(const Message answer,
                   client->ask({.kind = RequestKind::stop, .who = call.who}, control::kLiveAnswer));
  static_cast<void>(answer);
  Answered answered;
  answered.data["state"] = "asked for";
  answered.why = "the run stops after its current step and commits it; --resume goes on with it";
  return answered;
}

}  // namespace

std::vector<Tool> write_tools() {
  return {
      {"set_knob",
       Effect::changes_run,
       "Changes knobs of a live run between two steps, all or none; waits for the step with which "
       "they are in force. With revert_if the run itself puts the old values back if the steps "
       "after the change are worse by more than the rule says; waits for that as long as "
       "timeout_ms allows, and stretches tells it later.",
       {run_parameter(),
        {"settings", Parameter::Type::texts, "key=value, as in [\"buffers=4\"]", true},
        {"revert_if", Parameter::Type::text,
         "FIGURE>+N%, with step_time, forward, backward, update or loss, as in step_time>+10%"},
        {"watch_steps", Parameter::Type::integer,
         "steps that revert_if compares; default 5, after the one in which the change begins",
         false, 1, kWatchStepsMost}},
       set_knob},
      {"snapshot",
       Effect::changes_run,
       "Keeps the state of a live run as it is after this step, in a folder of its own.",
       {run_parameter()},
       snapshot},
      {"stop",
       Effect::changes_run,
       "Stops a live run after its current step, which it commits.",
       {run_parameter()},
       stop},
  };
}

}  // namespace sluice::mcp
