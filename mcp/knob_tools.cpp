#include "core/control/live_change.h"
#include "core/settings/run_config.h"
#include "core/tune/like_run.h"
#include "mcp/tool_groups.h"

namespace sluice::mcp {
namespace {

Json knob_json(const control::Knob& knob) {
  Json json = {{"key", knob.key}, {"value", knob.value}, {"values", knob.values}};
  if (!knob.unit.empty()) json["unit"] = knob.unit;
  json["default"] = knob.default_value;
  json["help"] = knob.help;
  return json;
}

// As they are in force in a live run; else as the record has them last.
Result<Answered> knobs(const Arguments& arguments, const Call& call) {
  ASSIGN_OR_RETURN(const std::string database, database_at(arguments, call));
  std::vector<control::Knob> found;
  Answered answered;
  const auto client = control::connect_to_run(database);
  answered.data["is_live"] = client.ok();
  if (client.ok()) {
    ASSIGN_OR_RETURN(control::Message answer,
                     (*client)->ask({.kind = control::RequestKind::knobs}, control::kLiveAnswer));
    found = std::move(answer.knobs);
  } else if (client.error().code() == ErrorCode::not_found) {
    ASSIGN_OR_RETURN(const settings::RunConfig config, tune::config_like(database, {}));
    found = settings::knobs(config);
  } else {
    return client.error();
  }
  answered.why = client.ok() ? "the run is live: set_knob changes these between two steps"
                             : "the run is over: as its record has them last";
  const auto key = arguments.text("key");
  Json& rows = answered.data["knobs"] = Json::array();
  for (const control::Knob& knob : found) {
    if (!key || knob.key == *key) rows.push_back(knob_json(knob));
  }
  if (!rows.empty()) return answered;
  answered.outcome = analyze::Outcome::nothing_found;
  answered.why = "there is no such knob";
  return answered;
}

}  // namespace

std::vector<Tool> knob_tools() {
  return {{"knobs",
           Effect::reads,
           "The knobs of a run: value in force, values allowed, what each does.",
           {run_parameter(), {"key", Parameter::Type::text, "this knob alone"}},
           knobs}};
}

}  // namespace sluice::mcp
