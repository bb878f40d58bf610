// Which of the simulated settings are worth saying, and that a list which is shown does not
// flicker.

#include "profiler/analyze/turn_next.h"

#include <catch2/catch.hpp>

#include "base/setting_text.h"

namespace sluice::analyze {
namespace {

PredictedChange change(const std::string& setting, double by, bool needs_new_run = false) {
  return {{setting}, {key_of(setting) + "=1"}, 1 + by, by, "", needs_new_run};
}

std::vector<std::string> settings_of(const std::vector<PredictedChange>& changes) {
  std::vector<std::string> settings;
  for (const PredictedChange& one : changes) settings.push_back(one.settings.front());
  return settings;
}

using Settings = std::vector<std::string>;

}  // namespace

TEST_CASE("what a live run can take comes apart from what needs a new run, the best first") {
  PredictedChanges predicted;
  predicted.each = {change("devices=5", -0.3, true), change("buffers=4", -0.04),
                    change("wire=native", -0.09), change("pipeline=serial", 0.2),
                    change("prefetch=false", -0.01)};
  const TurnNext next = turn_next(predicted);
  CHECK(settings_of(next.now) == Settings{"wire=native", "buffers=4"});
  CHECK(settings_of(next.another_run) == Settings{"devices=5"});
  CHECK_FALSE(next.together);
}

TEST_CASE("what changes the model's numbers comes last, however much it gains") {
  PredictedChanges predicted;
  predicted.each = {change("density=0.01", -0.4), change("buffers=4", -0.03)};
  CHECK(settings_of(turn_next(predicted).now) == Settings{"buffers=4", "density=0.01"});
}

TEST_CASE("a change appears at the threshold and leaves only below half of it") {
  PredictedChanges predicted;
  std::set<std::string> shown;
  const auto is_listed = [&](double by, const char* setting = "buffers=4") {
    predicted.each = {change(setting, by)};
    const TurnNext next = turn_next(predicted, shown);
    shown = next.shown();
    return !next.now.empty();
  };
  CHECK_FALSE(is_listed(-0.019));
  CHECK(is_listed(-0.02));
  CHECK(is_listed(-0.011));
  CHECK(is_listed(-0.012, "buffers=6"));  // another value of the same key
  CHECK_FALSE(is_listed(-0.009));
  CHECK_FALSE(is_listed(-0.019));
}

TEST_CASE("several together are said where they gain more than the best of them alone") {
  PredictedChanges predicted;
  predicted.each = {change("wire=native", -0.04), change("devices=5", -0.3, true)};
  predicted.together = PredictedChange{{"wire=native", "buffers=4"}, {"wire=fp32", "buffers=3"}};
  predicted.together->change = -0.045;
  CHECK_FALSE(turn_next(predicted).together);
  predicted.together->change = -0.06;
  const TurnNext next = turn_next(predicted);
  REQUIRE(next.together);
  CHECK(change_words(*next.together, "->") == "wire fp32 -> native, buffers 3 -> 4");
  // Shown already: half the distance does.
  predicted.together->change = -0.046;
  CHECK(turn_next(predicted, next.shown()).together);
  // One setting by itself is in the list already.
  predicted.together = change("wire=native", -0.2);
  CHECK_FALSE(turn_next(predicted).together);
}

TEST_CASE("that nothing helps is said with how many were simulated") {
  PredictedChanges predicted;
  predicted.each = {change("buffers=4", -0.01)};
  predicted.simulated_count = 23;
  CHECK(none_words(predicted) == "No single change gains 2 % (23 simulated).");
}

TEST_CASE("what gains less than simulation is off is left out, alone and together") {
  PredictedChanges predicted;
  predicted.each = {change("buffers=4", -0.06), change("wire=native", -0.2),
                    change("devices=5", -0.141, true)};
  predicted.together = PredictedChange{{"wire=native", "buffers=4"}, {"wire=fp32", "buffers=3"}};
  predicted.together->change = -0.13;
  predicted.simulated_count = 23;
  predicted.fit_error = -0.141;
  const TurnNext next = turn_next(predicted);
  CHECK(settings_of(next.now) == Settings{"wire=native"});
  CHECK(next.another_run.empty());
  CHECK_FALSE(next.together);
  CHECK_THAT(fit_words(predicted),
             Catch::Contains("14.1 % off what was recorded; 2 changes that gain less than that are "
                             "left out."));
  // Also what is shown already.
  CHECK(settings_of(turn_next(predicted, {"buffers", "wire"}).now) == Settings{"wire=native"});
  predicted.each = {change("buffers=4", -0.06)};
  CHECK(none_words(predicted) ==
        "No single change gains more than simulation is off: 14.1 % (23 simulated).");
  predicted.fit_error = 0.01;
  CHECK(turn_next(predicted).now.size() == 1);
}

TEST_CASE("seconds and percent of a prediction have one base") {
  PredictedChange one = change("buffers=4", -0.06);
  one.seconds = 3.008;
  CHECK(one.seconds_before() == Approx(3.2));
  CHECK(gain_words(one, "->") == "3.2 s -> 3.01 s (-6 %)");
}

TEST_CASE("the reason for a number of buffers says which way") {
  CHECK(why_words("buffers=4", "2") == "reads then need not wait for buffers");
  CHECK(why_words("buffers=2", "4") == "fewer subgroups then share each drive");
  CHECK(why_words("wire=native", "fp32") == "gradients and parameters then cross in 16 bits");
  CHECK(why_words("lr=1", "2") == "");
}

}  // namespace sluice::analyze
