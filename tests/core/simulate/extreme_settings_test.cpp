// Every number that can be set, at the ends of what can be written: it is refused, or the run is
// planned and simulated with numbers that are some.

#include <stdlib.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "core/data/sampler.h"
#include "core/plan/lr_schedule.h"
#include "core/plan/run_plan.h"
#include "tests/core/simulate/sample_plan.h"

using namespace sluice;
using namespace sluice::simulate;

namespace {

// How often each came: a table without numbers would hold nothing.
struct Outcomes {
  int refused_count = 0;
  int simulated_count = 0;
};

void check_refusal(const Error& error, Outcomes& outcomes) {
  CHECK((error.code() == ErrorCode::config || error.code() == ErrorCode::memory));
  CHECK_FALSE(error.message().empty());
  outcomes.refused_count += 1;
}

void check_numbers(const settings::RunConfig& config, const SimulatedStep& step) {
  CHECK(std::isfinite(step.total_seconds));
  CHECK(step.total_seconds > 0);
  for (const double seconds : step.seconds) CHECK((std::isfinite(seconds) && seconds >= 0));
  for (const std::int64_t at : {std::int64_t{0}, std::int64_t{5}, std::int64_t{1'000'000'000}}) {
    const double rate = plan::learning_rate({.peak = config.update.lr,
                                             .floor = config.schedule.min_lr,
                                             .warmup_steps = config.schedule.warmup_steps,
                                             .total_steps = config.schedule.steps},
                                            at);
    CHECK((std::isfinite(static_cast<float>(rate)) && rate >= 0));
  }
  // A text of a million tokens is enough, or the message says how many are; either comes at once.
  const Status text = data::Sampler::check(
      1'000'000, {.batch = 4, .sequence = 128, .validation_fraction = config.validation.fraction},
      "text");
  CHECK((text.ok() || text.error().message().find("must have at least") != std::string::npos));
}

void check_setting(const std::string& key, const std::string& value, Outcomes& outcomes) {
  INFO(key << "=" << value);
  const std::vector<std::string> settings = {"devices=2", "batch=1", "subgroup_elements=1000000",
                                             key + "=" + value};
  const auto config =
      simulation_config(sample_model("tiny"), sample_platform("smartssd-a5000"), settings);
  if (!config.ok()) return check_refusal(config.error(), outcomes);
  const auto plan = plan::plan_run(*config);
  if (!plan.ok()) return check_refusal(plan.error(), outcomes);
  const auto step = simulate_step(*plan);
  if (!step.ok()) return check_refusal(step.error(), outcomes);
  check_numbers(*config, *step);
  outcomes.simulated_count += 1;
}

Outcomes check_all(settings::SettingType type, const std::vector<std::string>& values) {
  Outcomes outcomes;
  for (const settings::SettingInfo& info : settings::settings()) {
    if (info.type != type) continue;
    for (const std::string& value : values) check_setting(info.key, value, outcomes);
  }
  return outcomes;
}

}  // namespace

TEST_CASE("a real number at the ends of what can be written is refused or simulated") {
  const Outcomes outcomes =
      check_all(settings::SettingType::number, {"1e-300", "1e-20", "1e20", "1e300"});
  CHECK(outcomes.refused_count > 30);
  CHECK(outcomes.simulated_count > 10);
}

TEST_CASE("a whole number at the ends of what can be written is refused or simulated") {
  const Outcomes outcomes =
      check_all(settings::SettingType::integer,
                {"0", "1", "1024", "1048576", "4294967296", "1000000000", "9223372036854775807"});
  CHECK(outcomes.refused_count > 40);
  CHECK(outcomes.simulated_count > 40);
}

TEST_CASE("a size at the ends of what can be written is refused or simulated") {
  const Outcomes outcomes = check_all(settings::SettingType::bytes,
                                      {"0", "1", "4096", "1TB", "1000TB", "9223372036854775807"});
  CHECK(outcomes.refused_count > 15);
  CHECK(outcomes.simulated_count > 15);
}

TEST_CASE("a simulation that would not end in minutes is refused before it begins") {
  const plan::RunPlan plan = sample_plan(
      "gpt2-124m", "smartssd-a5000", {"devices=10", "subgroup_elements=2000", "commit_every=1000"});
  const auto step = simulate_step(plan);
  REQUIRE_FALSE(step.ok());
  CHECK_THAT(step.error().message(), Catch::Matchers::Contains("2000 steps of 62220 subgroups") &&
                                         Catch::Matchers::Contains("lower commit_every"));
}

TEST_CASE("a machine so slow that its time cannot be counted is refused") {
  plan::RunPlan plan = sample_plan("gpt3-13b", "smartssd-a5000", {"devices=10"});
  for (platform::Link& link : plan.platform.links) {
    link.read_bytes_per_s = link.write_bytes_per_s = 1;
    link.chunk_curve.clear();
  }
  plan.layer_costs.assign(plan.layer_costs.size(), {8'640'000'000'000'000, 8'640'000'000'000'000});
  const auto step = simulate_step(plan);
  REQUIRE_FALSE(step.ok());
  CHECK_THAT(step.error().message(), Catch::Matchers::Contains("beyond what can be counted"));
}

TEST_CASE("the name and the places of a model and a platform are no settings") {
  std::string pattern = (std::filesystem::temp_directory_path() / "d'ir-XXXXXX").string();
  REQUIRE(::mkdtemp(pattern.data()) != nullptr);
  const std::filesystem::path folder = pattern;
  std::filesystem::copy_file(sample_platform("smartssd-a5000"), folder / "p\"\n.toml");
  std::ofstream(folder / "m'.toml")
      << "name = \"x\\u0027\\nmethod = \\u0027host\"\nlayers = 2\nhidden = 64\nheads = 2\n"
         "sequence = 32\nvocabulary = 256\n";
  const auto config =
      simulation_config((folder / "m'.toml").string(), (folder / "p\"\n.toml").string(), {});
  INFO((config.ok() ? "" : config.error().message()));
  REQUIRE(config.ok());
  CHECK(config->files.name == "x'\nmethod = 'host");
  CHECK(config->offload.method == settings::Method::csd);
  CHECK(config->batch.sequence == 32);
  CHECK(plan::plan_run(*config).ok());
  std::filesystem::remove_all(folder);
}
