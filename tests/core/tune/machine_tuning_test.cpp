// What is searched on a machine, and what is made of it. tuning_test.cpp has the search itself.

#include "core/tune/machine_tuning.h"

#include <catch2/catch.hpp>

#include "core/tune/fitted_run.h"
#include "tests/core/tune/made_recording.h"

namespace sluice::tune {
namespace {

const ModelOnPlatform kLaptop{sample_file("models/gpt2-124m"), sample_file("platforms/laptop")};
const ModelOnPlatform kServer{sample_file("models/gpt2-4.0b"),
                              sample_file("platforms/smartssd-a5000")};

TunedMachine tuned(const MachineTuning& tuning) {
  auto machine = tuning.tuned();
  INFO((machine.ok() ? "" : machine.error().message()));
  REQUIRE(machine.ok());
  return std::move(*machine);
}

std::vector<std::string> keys_of(const TunedMachine& machine) {
  std::vector<std::string> keys;
  for (const TuneKnob& knob : machine.knobs) keys.push_back(knob.key);
  return keys;
}

TEST_CASE("a tuned machine is the search's best, simulated") {
  const MachineTuning tuning(kServer, {.overrides = {"devices=10", "method=host"}});
  CHECK(tuning.fitted_run() == nullptr);
  CHECK(tuning.time_scale() == 1);
  const TunedMachine machine = tuned(tuning);
  CHECK(machine.before.total_seconds == machine.result.start_seconds);
  CHECK(machine.after.total_seconds == machine.result.best_seconds);
  CHECK(machine.after.total_seconds < machine.before.total_seconds);
  CHECK(machine.best.config.offload.devices == 10);
  for (const auto& [key, value] : machine.result.best) {
    CHECK(settings::value_of(machine.best.config, key) == value);
  }
  for (const std::string& key : keys_of(machine)) {
    CHECK(machine.changes(key) ==
          (std::ranges::count(machine.result.changes, key, &TuneChange::key) > 0));
  }
  CHECK(machine.changes("method"));
  CHECK(!machine.changes("devices"));
  CHECK(machine.combination_count() >= static_cast<std::size_t>(machine.result.evaluation_count));
}

TEST_CASE("compact state is said with its step, and not chosen") {
  const TunedMachine machine = tuned(MachineTuning(kServer, {}));
  CHECK(machine.best.config.offload.state_format.kind != StateFormatKind::compact);
  REQUIRE(machine.compact_seconds);
  CHECK(*machine.compact_seconds < machine.after.total_seconds);
  const TunedMachine compact =
      tuned(MachineTuning(kServer, {.overrides = {"state_format=compact"}}));
  CHECK(!compact.compact_seconds);
  CHECK(compact.best.config.offload.state_format.kind == StateFormatKind::compact);
  CHECK(!tuned(MachineTuning(kServer, {.held = {"state_format"}})).compact_seconds);
}

TEST_CASE("a knob that is held stays, and one that cannot change on a live run") {
  const TunedMachine held = tuned(MachineTuning(
      kLaptop, {.overrides = {"buffers=2"}, .held = {"buffers", "subgroup_elements"}}));
  CHECK(held.best.config.offload.buffers == 2);
  CHECK(std::ranges::count(keys_of(held), "buffers") == 0);
  CHECK(std::ranges::count(keys_of(held), "pipeline") == 1);

  const TunedMachine live = tuned(MachineTuning(
      kLaptop,
      {.held = {"pipeline"}, .changeable = std::vector<std::string>{"buffers", "pipeline"}}));
  CHECK(keys_of(live) == std::vector<std::string>{"buffers"});
}

TEST_CASE(
    "density is a knob only where it may fall, and the device map only where devices differ") {
  const std::vector<std::string> all_but_buffers = {
      "method", "pipeline", "wire", "overlap", "gradient_tier", "subgroup_elements"};
  TuneChoice choice{.held = all_but_buffers};
  CHECK(keys_of(tuned(MachineTuning(kLaptop, choice))) == std::vector<std::string>{"buffers"});
  choice.density_min = 0.1;
  const TunedMachine sparse = tuned(MachineTuning(kLaptop, choice));
  REQUIRE(keys_of(sparse) == std::vector<std::string>{"buffers", "density"});
  CHECK(sparse.knobs.back().values.back() == "0.1");
  CHECK(sparse.combination_count() ==
        sparse.knobs.front().values.size() * sparse.knobs.back().values.size());
}

TEST_CASE("what is held must be a knob") {
  CHECK(check_held({.held = {"buffers", "device_map"}}, "--hold").ok());
  const Status status = check_held({.held = {"bufers"}}, "--hold");
  REQUIRE(!status.ok());
  CHECK(status.error().code() == ErrorCode::config);
  CHECK_THAT(status.error().message(),
             Catch::StartsWith("--hold bufers: ") && Catch::Contains("did you mean 'buffers'?"));
  CHECK(!check_held({.held = {"density"}}, "--hold").ok());
}

TEST_CASE("a start that the machine cannot take is an error") {
  const auto machine = MachineTuning(kLaptop, {.overrides = {"devices=99"}}).tuned();
  CHECK(!machine.ok());
}

TEST_CASE("a run recorded on its own platform is tuned as its model is") {
  const MadeRecording recording({});
  auto run = open_recorded_run({recording.path(), "", ""});
  REQUIRE(run.ok());
  auto fitted = fitted_to(std::move(*run));
  REQUIRE(fitted.ok());
  const TuneChoice held{.held = {"subgroup_elements"}};
  const MachineTuning of_run(std::move(*fitted), held);
  REQUIRE(of_run.fitted_run() != nullptr);
  TuneChoice same = held;
  same.overrides = {"pipeline=handover", "subgroup_elements=20000000"};
  const TunedMachine from_run = tuned(of_run);
  const TunedMachine from_model = tuned(MachineTuning(kLaptop, same));
  CHECK(from_run.result.best == from_model.result.best);
  CHECK(from_run.after.total_seconds == Approx(from_model.after.total_seconds).epsilon(1e-3));
}

TEST_CASE("each number of devices is tuned for itself") {
  const MachineTuning tuning(kServer, {.held = {"subgroup_elements", "buffers"}});
  const std::vector<std::string> counts = {"1", "2", "4"};
  const auto machines = tuning.tuned_for_devices(counts);
  REQUIRE(machines.ok());
  REQUIRE(machines->size() == 3);
  double before = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const TunedMachine& machine = (*machines)[i];
    CHECK(settings::value_of(machine.best.config, "devices") == counts[i]);
    CHECK(machine.after.total_seconds < before);
    before = machine.after.total_seconds;
  }
}

TunedMachine priced(double seconds, double price_usd) {
  TunedMachine machine;
  machine.after.total_seconds = seconds;
  machine.best.platform.host_price_usd = price_usd;
  return machine;
}

TEST_CASE("the best buy is the machine on which a step costs least") {
  CHECK(
      best_buy(std::vector{priced(4, 100), priced(2, 150), priced(1.9, 400)}).after.total_seconds ==
      2);
  CHECK(best_buy(std::vector{priced(4, 0), priced(2, 0)}).after.total_seconds == 4);
}

}  // namespace
}  // namespace sluice::tune
