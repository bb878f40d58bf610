#include "core/answers/tuning.h"

#include "core/answers/fit.h"
#include "core/tune/fitted_run.h"
#include "core/tune/machine_tuning.h"

namespace sluice::answers {
namespace {

Json json_with_fit(const TuningAnswer& answer) {
  Json json;
  if (answer.tuning.fitted_run() != nullptr) {
    json["fit"] = to_json(*answer.tuning.fitted_run());
  }
  return json;
}

}  // namespace

Json tuning_json(const TuningAnswer& answer, const tune::TunedMachine& tuned) {
  const double time_scale = answer.tuning.time_scale();
  Json json = json_with_fit(answer);
  json["simulated"] = true;
  json["model"] = tuned.best.shape.name;
  json["platform"] = tuned.best.platform.name;
  json["seconds"] = {{"before", tuned.before.total_seconds * time_scale},
                     {"after", tuned.after.total_seconds * time_scale}};
  if (tuned.compact_seconds) json["seconds"]["compact"] = *tuned.compact_seconds * time_scale;
  json["changes"] = Json::array();
  for (const tune::TuneChange& change : tuned.result.changes) {
    json["changes"].push_back({{"key", change.key},
                               {"from", change.from},
                               {"to", change.to},
                               {"worth_seconds", change.worth_seconds * time_scale}});
    // An infinite worth is written as null.
  }
  json["evaluations"] = tuned.result.evaluation_count;
  json["combinations"] = tuned.combination_count();
  if (answer.applies) json["applied_after_step"] = nullptr;
  if (answer.applied_after_step) json["applied_after_step"] = *answer.applied_after_step;
  return json;
}

Json devices_json(const TuningAnswer& answer, std::span<const tune::TunedMachine> machines) {
  Json json = json_with_fit(answer);
  json["simulated"] = true;
  json["model"] = machines.front().best.shape.name;
  json["platform"] = machines.front().best.platform.name;
  json["rows"] = Json::array();
  for (const tune::TunedMachine& tuned : machines) {
    json["rows"].push_back({{"devices", tuned.best.config.offload.devices},
                            {"seconds", tuned.after.total_seconds * answer.tuning.time_scale()},
                            {"price_usd", tuned.best.platform.price_usd()},
                            {"settings", tuned.result.best}});
  }
  return json;
}

}  // namespace sluice::answers
