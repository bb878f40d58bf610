#include "core/answers/predicted_run.h"
#include "core/answers/tuning.h"
#include "core/control/live_change.h"
#include "core/tune/fitted_run.h"
#include "core/tune/machine_tuning.h"
#include "mcp/tool_groups.h"
#include "profiler/analyze/answers.h"

namespace sluice::mcp {
namespace {

using analyze::Outcome;

Result<Answered> what_if(const Arguments& arguments, const Call& call) {
  ASSIGN_OR_RETURN(const std::string database, database_at(arguments, call));
  ASSIGN_OR_RETURN(const answers::PredictedRun predicted,
                   answers::predicted_run(database, arguments.texts("settings"), call.stops));
  Answered answered;
  answered.data = answers::to_json(predicted);
  const analyze::Answer told = analyze::turn_next_answer(predicted.changes);
  answered.outcome = told.outcome;
  answered.why = predicted.changes.unavailable.empty() ? told.why : predicted.changes.unavailable;
  return answered;
}

// The keys that the live run would take.
Result<std::vector<std::string>> live_keys(const std::string& database) {
  ASSIGN_OR_RETURN(const auto client, control::connect_to_run(database));
  ASSIGN_OR_RETURN(const control::Message answer,
                   client->ask({.kind = control::RequestKind::knobs}, control::kLiveAnswer));
  std::vector<std::string> keys;
  for (const control::Knob& knob : answer.knobs) keys.push_back(knob.key);
  return keys;
}

Result<Answered> propose(const Arguments& arguments, const Call& call) {
  ASSIGN_OR_RETURN(const std::string database, database_at(arguments, call));
  tune::TuneChoice choice;
  choice.held = arguments.texts("hold");
  choice.stops = call.stops;
  RETURN_IF_ERROR(tune::check_held(choice, "hold"));
  if (arguments.flag("knobs_only")) {
    ASSIGN_OR_RETURN(choice.changeable, live_keys(database));
  }
  ASSIGN_OR_RETURN(tune::RecordedRun run, tune::open_recorded_run({database, "", ""}));
  ASSIGN_OR_RETURN(tune::FittedRun fitted, tune::fitted_to(std::move(run), call.stops));
  const tune::MachineTuning tuning(std::move(fitted), std::move(choice));
  ASSIGN_OR_RETURN(const tune::TunedMachine tuned, tuning.tuned());
  Answered answered;
  Json all = answers::tuning_json({.tuning = tuning}, tuned);
  // The proposal before what it rests on: what is cut comes last.
  for (const char* key : {"simulated", "seconds", "changes"}) {
    if (all.contains(key)) answered.data[key] = std::move(all[key]);
    all.erase(key);
  }
  for (auto& [key, value] : all.items()) answered.data[key] = std::move(value);
  answered.outcome = tuned.result.changes.empty() ? Outcome::nothing_found : Outcome::answer;
  answered.why =
      fmt::format("{} settings simulated; nothing was changed", tuned.result.evaluation_count);
  return answered;
}

}  // namespace

std::vector<Tool> tuning_tools() {
  return {
      {"what_if",
       Effect::reads,
       "PREDICTED, by simulation on the machine as fitted to the run's steps: a step with other "
       "settings. Without settings: the best value of each by itself. Changes nothing.",
       {run_parameter(),
        {"settings", Parameter::Type::texts, "key=value, together, as in [\"buffers=4\"]"}},
       what_if},
      {"propose",
       Effect::reads,
       "What tuning proposes for the run: several settings together, found by simulation, and what "
       "each is worth. Changes nothing.",
       {run_parameter(),
        {"hold", Parameter::Type::texts, "keys of settings that stay as they are"},
        {"knobs_only", Parameter::Type::flag,
         "only what set_knob can change in this live run; default false"}},
       propose},
  };
}

}  // namespace sluice::mcp
