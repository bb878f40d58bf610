// What is predicted of a recorded run, against simulation of the machine on which it was made.

#include "core/tune/prediction.h"

#include <catch2/catch.hpp>

#include "base/setting_text.h"
#include "core/plan/run_plan.h"
#include "tests/core/tune/made_recording.h"

namespace sluice::tune {
namespace {

Predictor opened(const MadeRecording& recording) {
  auto predictor = Predictor::open(recording.path());
  INFO((predictor.ok() ? "" : predictor.error().message()));
  REQUIRE(predictor.ok());
  return std::move(*predictor);
}

Prediction predicted(const Predictor& predictor, const std::vector<std::string>& settings) {
  auto prediction = predictor.with(settings);
  INFO((prediction.ok() ? "" : prediction.error().message()));
  REQUIRE(prediction.ok());
  return std::move(*prediction);
}

double simulated_seconds(const MadeRecording& recording, const std::string& setting) {
  settings::RunConfig config =
      simulate::simulation_config(
          sample_file("models/gpt2-124m"), sample_file("platforms/laptop"),
          std::vector<std::string>{"pipeline=handover", "subgroup_elements=20000000", setting})
          .value();
  const auto plan = plan::plan_run(config).value();
  CHECK(plan.geometry.subgroup_count() == recording.plan().geometry.subgroup_count());
  return simulate::simulate_step(plan).value().total_seconds;
}

TEST_CASE("a run recorded on its own platform is predicted as simulation has it") {
  const MadeRecording recording({});
  const Predictor predictor = opened(recording);
  CHECK(std::abs(predictor.fit_error()) < 1e-3);
  const double now = static_cast<double>(recording.step_dur_ns()) / 1e9;
  CHECK(predictor.recorded_seconds() == Approx(now));
  CHECK(predictor.simulated_seconds() == Approx(now).epsilon(1e-3));
  for (const std::string setting : {"buffers=6", "wire=native", "devices=2"}) {
    INFO(setting);
    const Prediction prediction = predicted(predictor, {setting});
    const double seconds = simulated_seconds(recording, setting);
    CHECK(prediction.seconds == Approx(seconds).epsilon(1e-3));
    CHECK(prediction.change == Approx(seconds / now - 1).margin(1e-3));
  }
}

TEST_CASE("predicted seconds are by the recording's clock") {
  const Predictor plain = opened(MadeRecording({}));
  const Predictor slow = opened(MadeRecording({.settings = {"clock=emulated", "time_scale=4"}}));
  CHECK(slow.recorded_seconds() == Approx(4 * plain.recorded_seconds()));
  const Prediction one = predicted(plain, {"wire=native"});
  const Prediction other = predicted(slow, {"wire=native"});
  CHECK(other.seconds == Approx(4 * one.seconds).epsilon(1e-3));
  CHECK(other.change == Approx(one.change).margin(1e-3));
}

TEST_CASE("a prediction says what the settings were and whether they need another run") {
  const Predictor predictor = opened(MadeRecording({.settings = {"buffers=3", "method=csd"}}));
  const Prediction knobs = predicted(predictor, {"buffers=4", "wire=native"});
  CHECK(knobs.settings == std::vector<std::string>{"buffers=4", "wire=native"});
  CHECK(knobs.from == std::vector<std::string>{"buffers=3", "wire=fp32"});
  CHECK(!knobs.rests_on_file);
  CHECK(predicted(predictor, {"buffers=4", "devices=2"}).needs_new_run);
  CHECK(predicted(predictor, {"method=host"}).rests_on_file);
  CHECK(!predicted(predictor, {"method=csd"}).rests_on_file);
  CHECK(predictor.value_now("buffers=7") == "3");
  CHECK(predictor.value_now("buffers") == "3");
}

TEST_CASE("a simulated run needs no new run, and nothing of it was measured") {
  const Predictor predictor = opened(MadeRecording({.clock = "simulated", .step_count = 1}));
  CHECK(!predicted(predictor, {"devices=2"}).needs_new_run);
  CHECK(!predicted(predictor, {"method=host"}).rests_on_file);
}

TEST_CASE("what a recording brings with it is not predicted, nor what is no setting") {
  for (const std::string setting : {"model=m.toml", "platform=p.toml", "clock=real"}) {
    const Status status = check_predictable({"buffers=2", setting});
    REQUIRE(!status.ok());
    CHECK_THAT(status.error().message(), Catch::Contains("the run's own is used"));
  }
  const Status misspelt = check_predictable({"bufers=2"});
  REQUIRE(!misspelt.ok());
  CHECK_THAT(misspelt.error().message(), Catch::Contains("did you mean 'buffers'"));
  CHECK(check_predictable({"buffers=2", "devices=3"}).ok());
  CHECK(!opened(MadeRecording({})).with({"buffers=2", "clock=real"}).ok());
}

TEST_CASE("each setting is predicted once, the best first, and several together are no worse") {
  const MadeRecording recording({.settings = {"devices=2"}});
  const Predictor predictor = opened(recording);
  const auto all = predictor.all();
  REQUIRE(all.ok());
  std::set<std::string> keys;
  double best_knob = 0;
  for (const Prediction& prediction : all->each) {
    REQUIRE(prediction.settings.size() == 1);
    const std::string key = key_of(prediction.settings.front());
    CHECK(keys.insert(key).second);
    CHECK(value_of(prediction.settings.front()) != predictor.value_now(key));
    CHECK(prediction.rests_on_file == (key == "method"));
    const bool is_searched = std::ranges::count(tune_knobs({}), key, &TuneKnob::key) > 0;
    if (is_searched && key != "subgroup_elements") {
      best_knob = std::min(best_knob, prediction.change);
    }
  }
  CHECK(keys.contains("buffers"));
  CHECK(keys.contains("devices"));
  CHECK(std::ranges::is_sorted(all->each, {}, &Prediction::change));
  CHECK(all->simulated_count >= static_cast<int>(all->each.size()));
  REQUIRE(all->together);
  CHECK(all->together->change <= best_knob + 0.003);
  CHECK(!all->together->needs_new_run);
  const Prediction again = predicted(predictor, all->together->settings);
  CHECK(again.seconds == Approx(all->together->seconds));
}

}  // namespace
}  // namespace sluice::tune
