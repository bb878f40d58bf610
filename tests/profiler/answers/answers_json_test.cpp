// The form of answers, which commands, pages and other programs share.

#include <catch2/catch.hpp>

#include "profiler/answers/comparison_json.h"
#include "profiler/answers/prediction.h"
#include "profiler/answers/run_json.h"

using namespace sluice;
using namespace sluice::answers;

namespace {

std::vector<std::string> keys_of(const Json& json) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : json.items()) keys.push_back(key);
  return keys;
}

PredictedRun predicted_run(Asked asked) {
  PredictedRun predicted;
  predicted.run = "tiny";
  predicted.recorded_seconds = 2;
  predicted.simulated_seconds = 2.1;
  predicted.asked = asked;
  predicted.changes.each.push_back({.settings = {"buffers=4"},
                                    .from = {"buffers=2"},
                                    .seconds = 1.6,
                                    .change = -0.2,
                                    .needs_new_run = false});
  return predicted;
}

}  // namespace

TEST_CASE(
    "a prediction has its figures, and the joint change where every setting was asked about") {
  const Json these = to_json(predicted_run(Asked::these));
  CHECK(keys_of(these) == std::vector<std::string>{"run", "fit_error", "recorded_seconds",
                                                   "simulated_seconds", "simulated_count",
                                                   "caution", "predictions", "unavailable",
                                                   "answers"});
  CHECK(keys_of(these["predictions"][0]) ==
        std::vector<std::string>{"settings", "from", "seconds", "change", "why", "needs_new_run"});
  PredictedRun every = predicted_run(Asked::every);
  CHECK(to_json(every)["together"].is_null());
  every.changes.together = every.changes.each.front();
  CHECK(to_json(every)["together"]["seconds"] == 1.6);
}

TEST_CASE("a prediction that could not be made says why and has no figures") {
  PredictedRun none;
  none.run = "tiny";
  none.changes.unavailable = "record more steps";
  const Json json = to_json(none);
  CHECK(json["unavailable"] == "record more steps");
  CHECK(json["predictions"].empty());
  CHECK_FALSE(json.contains("fit_error"));
  CHECK(json["answers"][0]["outcome"] == analyze::outcome_name(analyze::Outcome::could_not_look));
}

TEST_CASE("runs that cannot be compared say so, figure by figure the same keys") {
  analyze::Comparison comparison;
  comparison.comparability.mismatches.push_back({"model", "a", "b", "Another model."});
  comparison.figures.push_back({.key = "step_time", .unit = "s", .a = 2, .b = 3, .noise = 0.1});
  comparison.differences.push_back({"buffers", "2", "4"});
  const Json json = to_json(comparison);
  CHECK(json["comparability"]["comparable"] == false);
  CHECK(json["comparability"]["mismatches"][0]["meaning"] == "Another model.");
  CHECK(keys_of(json["figures"]["step_time"]) ==
        std::vector<std::string>{"a", "b", "change", "noise", "is_more_than_noise"});
  CHECK(json["figures"]["step_time"]["change"] == 0.5);
  CHECK(json["differences"] == Json{{"buffers", {{"a", "2"}, {"b", "4"}}}});
}

TEST_CASE("steps are counted from 1, and lists that are empty are there") {
  RunAnswer run;
  run.steps.push_back({.id = 0, .ts = 10, .dur = 5});
  run.losses.push_back(
      {.name = "dropped", .value = 7, .description = "Records that found no room."});
  run.info.knob_changes.push_back(
      {.step_id = 3, .knob = "buffers", .old_value = "2", .new_value = "4", .who = "set"});
  const Json json = to_json(run);
  CHECK(json["steps"][0]["step"] == 1);
  CHECK(json["knob_changes"][0]["step"] == 4);
  CHECK(json["losses"][0]["value"] == 7);
  CHECK(json["lateness"].is_null());
  for (const char* list : {"validations", "stages", "links", "stretches", "modes"}) {
    INFO(list);
    CHECK(json[list].is_array());
    CHECK(json[list].empty());
  }
  CHECK_FALSE(json["steps"][0].contains("share"));
  run.shares[0] = {};
  CHECK(to_json(run)["steps"][0]["share"].size() == analyze::kCauseCount);
}
