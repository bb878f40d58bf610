#include "profiler/answers/prediction.h"

#include "profiler/analyze/answers.h"

namespace sluice::answers {

Json to_json(const PredictedRun& predicted) {
  const analyze::PredictedChanges& changes = predicted.changes;
  Json json;
  json["run"] = predicted.run;
  if (changes.unavailable.empty()) {
    json["fit_error"] = changes.fit_error;
    json["recorded_seconds"] = predicted.recorded_seconds;
    json["simulated_seconds"] = predicted.simulated_seconds;
    json["simulated_count"] = changes.simulated_count;
    json["caution"] = changes.caution;
  }
  json["predictions"] = Json::array();
  for (const analyze::PredictedChange& one : changes.each)
    json["predictions"].push_back(change_json(one));
  if (predicted.asked == Asked::every) json["together"] = nullptr;
  if (changes.together) json["together"] = change_json(*changes.together);
  json["unavailable"] = changes.unavailable;
  json["answers"] = answers_json(std::array{analyze::turn_next_answer(changes)});
  return json;
}

}  // namespace sluice::answers
