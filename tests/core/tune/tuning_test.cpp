// The search for settings against all combinations of them, on three machines.

#include "core/tune/tuning.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <sstream>

#include "core/plan/run_plan.h"
#include "core/simulate/simulation.h"
#include "tests/sanitizer.h"
#include "tests/test_all.h"

namespace sluice::tune {
namespace {

const double kImpossible = std::numeric_limits<double>::infinity();

// Three thousand simulated steps: too many under a sanitizer.
#if !defined(SLUICE_SANITIZED)
const std::string kRoot = SLUICE_SOURCE_DIR;

std::string platform_path(const char* name) {
  return kRoot + "/sample_models/platforms/" + name + ".toml";
}

// A drive that reads while it writes behind a slow host link: what the samples do not have.
std::string full_duplex_platform() {
  std::ifstream in(platform_path("smartssd-a5000"));
  std::stringstream text;
  text << in.rdbuf();
  std::string changed = text.str();
  const auto replace = [&](const std::string& from, const std::string& to) {
    std::size_t count = 0;
    for (std::size_t at = 0; (at = changed.find(from, at)) != std::string::npos; ++count) {
      changed.replace(at, from.size(), to);
      at += to.size();
    }
    REQUIRE(count > 0);
  };
  replace("duplex = \"half\"", "duplex = \"full\"");
  replace("= \"8 GB/s\"", "= \"2 GB/s\"");
  const std::string path = std::filesystem::temp_directory_path() / "full_duplex_platform.toml";
  std::ofstream(path) << changed;
  return path;
}

struct Machine {
  std::string model;
  std::string platform;
  std::vector<std::string> settings;

  Result<double> seconds(const TuneSettings& tried) const {
    std::vector<std::string> overrides = settings;
    for (const auto& [key, value] : tried) overrides.push_back(key + "=" + value);
    const auto config = simulate::simulation_config(
        kRoot + "/sample_models/models/" + model + ".toml", platform, overrides);
    if (!config.ok()) return kImpossible;
    const auto plan = plan::plan_run(*config);
    if (!plan.ok()) return kImpossible;
    const auto step = simulate::simulate_step(*plan);
    return step.ok() ? step->total_seconds : kImpossible;
  }
};

void for_each_combination(const std::vector<TuneKnob>& knobs, std::size_t next,
                          TuneSettings& settings, const std::function<void()>& visit) {
  if (next == knobs.size()) return visit();
  for (const std::string& value : knobs[next].values) {
    settings[knobs[next].key] = value;
    for_each_combination(knobs, next + 1, settings, visit);
  }
}

// All combinations on one of the two larger machines are a minute of simulated steps.
std::vector<Machine> searched_machines() {
  std::vector<Machine> machines = {
      {"gpt2-124m", platform_path("laptop"), {"devices=4", "batch=1", "sequence=256"}}};
  if (!is_testing_all()) return machines;
  machines.push_back({"gpt2-1.7b", platform_path("smartssd-a5000"), {"devices=6"}});
  machines.push_back({"gpt2-1.7b", full_duplex_platform(), {"devices=3"}});
  return machines;
}

TEST_CASE("the search comes within 3 % of the best of all combinations with a tenth of the work") {
  const auto machine = GENERATE(from_range(searched_machines()));
  const std::vector<TuneKnob> knobs = tune_knobs({});
  const auto evaluate = [&](const TuneSettings& tried) { return machine.seconds(tried); };

  int combination_count = 0;
  double least = kImpossible;
  TuneSettings settings;
  for_each_combination(knobs, 0, settings, [&] {
    ++combination_count;
    least = std::min(least, *evaluate(settings));
  });
  REQUIRE(least < kImpossible);

  const TuneSettings start = {{"method", "csd"},
                              {"pipeline", "serial"},
                              {"buffers", "2"},
                              {"subgroup_elements", "16000000"},
                              {"gradient_tier", "storage"},
                              {"overlap", "off"},
                              {"wire", "fp32"}};
  const auto found = tune(knobs, start, evaluate);
  REQUIRE(found.ok());
  CAPTURE(machine.platform, combination_count, found->evaluation_count, found->start_seconds);
  CHECK(found->best_seconds <= 1.03 * least);
  CHECK(found->best_seconds == *evaluate(found->best));
  CHECK(10 * found->evaluation_count <= combination_count);
}

TEST_CASE("a run that clips by subgroup keeps what its numbers follow from; no other clips so") {
  const auto with = [](const std::vector<std::string>& settings) {
    const auto config = simulate::simulation_config(kRoot + "/sample_models/models/gpt2-124m.toml",
                                                    platform_path("laptop"), settings);
    REQUIRE(config.ok());
    return *config;
  };
  const auto has = [](const std::vector<TuneKnob>& knobs, const std::string& key) {
    return std::ranges::count(knobs, key, &TuneKnob::key) == 1;
  };
  const std::vector<TuneKnob> clipped = tune_knobs(with({"overlap=local"}));
  CHECK(has(clipped, "pipeline"));
  CHECK_FALSE(has(clipped, "overlap"));
  CHECK_FALSE(has(clipped, "subgroup_elements"));
  const auto single = plan::plan_run(with({"overlap=local"}));
  REQUIRE(single.ok());
  CHECK_FALSE(has(single_changes(*single, 1), "overlap"));
  for (const std::string setting : {"overlap=off", "overlap=exact"}) {
    for (const TuneKnob& knob : tune_knobs(with({setting}))) {
      CHECK(std::ranges::count(knob.values, "local") == 0);
    }
  }
  // Where nothing is clipped the numbers are the same.
  CHECK(has(tune_knobs(with({"overlap=local", "max_grad_norm=0"})), "overlap"));
}

// The first of three devices three times as fast.
platform::Platform uneven_platform() {
  auto platform = platform::load_platform(platform_path("smartssd-a5000"));
  REQUIRE(platform.ok());
  auto three = platform::with_devices(*platform, 3);
  REQUIRE(three.ok());
  for (platform::Link& link : three->links) {
    if (!link.name.starts_with("csd0.")) continue;
    link.read_bytes_per_s *= 3;
    link.write_bytes_per_s *= 3;
    link.chunk_curve.clear();
  }
  for (platform::Engine& engine : three->engines) {
    if (engine.name == "csd0.engine") engine.rate.at("adamw") *= 3;
  }
  return *three;
}

TEST_CASE("uneven devices get shares by which none waits for another") {
  const platform::Platform platform = uneven_platform();
  const std::string model = kRoot + "/sample_models/models/gpt2-1.7b.toml";
  const auto shape = model::load_model_shape(model);
  REQUIRE(shape.ok());
  const auto seconds = [&](const std::string& method, const std::string& shares) {
    const auto config = simulate::simulation_config(
        model, platform_path("smartssd-a5000"),
        std::vector<std::string>{"devices=3", "subgroup_elements=4000000", "buffers=8",
                                 "method=" + method, "device_map=" + shares});
    REQUIRE(config.ok());
    const auto plan = plan::plan_run(*config, *shape, platform);
    REQUIRE(plan.ok());
    const auto step = simulate::simulate_step(*plan);
    REQUIRE(step.ok());
    return step->total_seconds;
  };
  const auto knob = device_map_knob(platform);
  REQUIRE(knob);
  for (const std::string method : {"csd", "host"}) {
    double least = kImpossible;
    for (double share = 1; share <= 6; share += 0.25) {
      least = std::min(least, seconds(method, fmt::format("{},1,1", share)));
    }
    const auto found = tune({*knob}, {{"device_map", "even"}}, [&](const TuneSettings& tried) {
      return Result<double>(seconds(method, tried.at("device_map")));
    });
    REQUIRE(found.ok());
    CAPTURE(method, found->best.at("device_map"), found->start_seconds, least);
    CHECK(found->best_seconds <= 1.03 * least);
    CHECK(found->best_seconds < 0.85 * found->start_seconds);
  }
}

TEST_CASE("devices that are alike have nothing to share out otherwise") {
  const auto platform = platform::load_platform(platform_path("smartssd-a5000"));
  REQUIRE(platform.ok());
  CHECK(!device_map_knob(*platform));
}

TEST_CASE("single changes are the values not in force, the nearest first, of every setting") {
  const auto config = simulate::simulation_config(
      kRoot + "/sample_models/models/gpt2-1.7b.toml", platform_path("smartssd-a5000"),
      std::vector<std::string>{"devices=4", "buffers=4", "pipeline=serial"});
  REQUIRE(config.ok());
  const auto plan = plan::plan_run(*config);
  REQUIRE(plan.ok());
  std::map<std::string, std::vector<std::string>> values;
  for (const TuneKnob& knob : single_changes(*plan, 6)) values[knob.key] = knob.values;
  using Values = std::vector<std::string>;
  CHECK(values.at("buffers") == Values{"3", "6", "2", "8", "12", "1"});
  CHECK(values.at("devices") == Values{"5", "6"});
  CHECK(values.at("pipeline") == Values{"nbuffer", "handover"});
  CHECK(values.at("method") == Values{"host"});
  CHECK(values.at("wire") == Values{"native"});
  CHECK(values.at("gradient_tier") == Values{"memory"});
  CHECK(values.at("prefetch") == Values{"false"});
  CHECK(values.at("density") == Values{"0.01"});
  CHECK(values.at("subgroup_elements") == Values{"40000000"});  // 85 million is the largest
  for (const char* key : {"bounce_memory", "queue_depth", "io_bytes"}) {
    CHECK(values.at(key).size() == 1);
  }
  // A machine that has no more devices offers none.
  for (const TuneKnob& knob : single_changes(*plan, 4)) CHECK(knob.key != "devices");
}

#endif

// Two knobs; the second helps only while the first is as it was.
TEST_CASE("a change that is not worth anything in the end is not told") {
  const std::vector<TuneKnob> knobs = {{"a", {"0", "1"}}, {"b", {"0", "1"}}};
  const auto evaluate = [](const TuneSettings& tried) -> Result<double> {
    const bool a = tried.at("a") == "1";
    const bool b = tried.at("b") == "1";
    return b ? 1.0 : (a ? 2.0 : 3.0);
  };
  const auto found = tune(knobs, {{"a", "0"}, {"b", "0"}}, evaluate);
  REQUIRE(found.ok());
  REQUIRE(found->changes.size() == 1);
  CHECK(found->changes[0].key == "b");
  CHECK(found->changes[0].worth_seconds == 2.0);
  CHECK(found->best == TuneSettings{{"a", "0"}, {"b", "1"}});
  CHECK(found->best_seconds == 1.0);
}

TEST_CASE("what does not fit the machine is left, and an error ends the search") {
  const std::vector<TuneKnob> knobs = {{"a", {"0", "1", "2"}}};
  const auto fits_two = tune(knobs, {{"a", "0"}}, [](const TuneSettings& tried) {
    return Result<double>(tried.at("a") == "2" ? 5.0 : kImpossible);
  });
  REQUIRE(fits_two.ok());
  CHECK(fits_two->best.at("a") == "2");
  const auto fails = tune(knobs, {{"a", "0"}}, [](const TuneSettings&) -> Result<double> {
    return make_error(ErrorCode::config, "no such platform");
  });
  REQUIRE(!fails.ok());
  CHECK(fails.error().message() == "no such platform");
}

}  // namespace
}  // namespace sluice::tune
