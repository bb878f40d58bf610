// What would be with a faster engine, more compute units, faster media or links: each helps where
// it binds, does nothing where something else does, and moves no byte elsewhere.

#include "core/plan/run_plan.h"
#include "core/platform/platform_change.h"
#include "tests/core/simulate/sample_plan.h"

using namespace sluice;
using namespace sluice::simulate;

namespace {

// GPT-2 4.0B on two of the testbed's CSDs, so changed.
SimulatedStep changed_step(const std::vector<std::string>& changes,
                           const std::string& pipeline = "nbuffer") {
  const auto change = platform::parse_platform_change(changes);
  REQUIRE(change.ok());
  const settings::RunConfig config = sample_config(
      "gpt2-4.0b", "smartssd-a5000", {"devices=2", "method=csd", "pipeline=" + pipeline});
  const auto platform = platform::load_platform(config.files.platform);
  REQUIRE(platform.ok());
  const auto changed = platform::with_change(*platform, *change);
  const auto shape = model::load_model_shape(config.files.model);
  REQUIRE((changed.ok() && shape.ok()));
  const auto plan = plan::plan_run(config, *shape, *changed);
  INFO((plan.ok() ? std::string() : plan.error().message()));
  REQUIRE(plan.ok());
  return simulated(*plan);
}

double update_seconds(const SimulatedStep& step) {
  return step.seconds[static_cast<std::size_t>(Phase::update)];
}

// How many times as fast the update is with `more` as without.
double gain(std::vector<std::string> changes, const std::string& more,
            const std::string& pipeline = "nbuffer") {
  const double before = update_seconds(changed_step(changes, pipeline));
  changes.push_back(more);
  return before / update_seconds(changed_step(changes, pipeline));
}

// At a twentieth of a SmartSSD's speed the engine takes three times as long as its drive.
const std::string kSlowEngine = "engine_scale=0.05";

struct Moved {
  std::string link;
  std::int64_t read_bytes;
  std::int64_t write_bytes;
  bool operator==(const Moved&) const = default;
};

std::vector<Moved> moved(const SimulatedStep& step) {
  std::vector<Moved> all;
  for (const LinkUse& link : step.links) {
    Moved& sum = all.emplace_back(Moved{link.name, 0, 0});
    for (const auto& phase : link.size_bytes) {
      sum.read_bytes += phase[0];
      sum.write_bytes += phase[1];
    }
  }
  return all;
}

}  // namespace

TEST_CASE("a second compute unit helps where the engine binds, not where the drive does") {
  CHECK(gain({kSlowEngine}, "compute_units=2") > 1.85);
  CHECK(gain({}, "compute_units=2") == Approx(1).epsilon(0.01));
  // One subgroup at a time leaves a second unit nothing to do.
  CHECK(gain({kSlowEngine}, "compute_units=2", "serial") == 1);
}

TEST_CASE("two compute units are not quite an engine of twice the speed") {
  const double units = update_seconds(changed_step({kSlowEngine, "compute_units=2"}));
  const double speed = update_seconds(changed_step({kSlowEngine, "engine_scale=0.1"}));
  CHECK(units >= speed);
  CHECK(units < 1.1 * speed);
}

TEST_CASE("beyond the point where media bind a faster engine gives nothing") {
  CHECK(gain({kSlowEngine}, "engine_scale=0.1") > 1.5);
  CHECK(gain({"engine_scale=100"}, "engine_scale=100000") == Approx(1).epsilon(0.002));
  CHECK(gain({}, "engine_scale=100") < 1.05);
}

TEST_CASE("faster media and internal links help where they bind, both together") {
  CHECK(gain({kSlowEngine}, "media_scale=2") < 1.05);
  CHECK(gain({"engine_scale=100", "internal_scale=2"}, "media_scale=2") > 1.5);
  CHECK(gain({"engine_scale=100", "media_scale=2"}, "internal_scale=2") > 1.5);
  CHECK(gain({"engine_scale=100"}, "link_scale=2") < 1.1);
}

TEST_CASE("no scale and no compute unit changes a byte on any link") {
  for (const std::string pipeline : {"serial", "handover"}) {
    const std::vector<Moved> wanted = moved(changed_step({}, pipeline));
    for (const char* change : {"engine_scale=100", "engine_scale=0.05", "media_scale=3",
                               "internal_scale=0.5", "link_scale=10", "compute_units=4"}) {
      INFO(pipeline << " " << change);
      CHECK((moved(changed_step({change}, pipeline)) == wanted));
    }
  }
}

TEST_CASE("an engine is busy for as much of a step as its compute units are in the mean") {
  const auto busy = [](const std::vector<std::string>& changes) {
    const SimulatedStep step = changed_step(changes);
    const auto engine = std::ranges::find(step.engines, "csd0.engine", &EngineUse::name);
    const ByPhase& seconds = engine->busy_seconds;
    return (seconds[0] + seconds[1] + seconds[2]) / step.total_seconds;
  };
  CHECK(busy({kSlowEngine}) > 0.9);
  CHECK(busy({kSlowEngine, "compute_units=2"}) > 0.8);
  CHECK(busy({kSlowEngine, "compute_units=2"}) <= 1);
}
