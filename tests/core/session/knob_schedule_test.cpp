// Which settings each step is to have.

#include "core/session/knob_schedule.h"

#include <catch2/catch.hpp>

using namespace sluice;
using namespace sluice::session;

namespace {

// Begins compressed or not, by the density.
settings::RunConfig config_with(double density, std::int64_t warmup_steps) {
  const std::vector<std::string> settings = {fmt::format("density={}", density),
                                             fmt::format("density_warmup_steps={}", warmup_steps)};
  const auto config = settings::parse_run_config(
      "model = 'm.toml'\nplatform = 'p.toml'\ntext = 't.txt'\n", "run.toml", settings);
  REQUIRE(config.ok());
  return *config;
}

}  // namespace

TEST_CASE("without changes and without a warm-up no step wants anything") {
  const KnobSchedule schedule(config_with(0.01, 0), {});
  for (std::int64_t step = 0; step < 10; ++step) {
    const auto planned = schedule.planned(step);
    REQUIRE(planned.ok());
    REQUIRE_FALSE(planned->has_value());
  }
}

TEST_CASE("changes come at their step, several of one step together") {
  const std::vector<PlannedChange> changes = {{2, {"buffers=3"}}, {2, {"pipeline=serial"}}};
  KnobSchedule schedule(config_with(1, 0), changes);
  REQUIRE_FALSE(schedule.planned(1)->has_value());
  const auto planned = schedule.planned(2);
  REQUIRE(planned.ok());
  REQUIRE(planned->has_value());
  CHECK((*planned)->now.offload.buffers == 3);
  CHECK((*planned)->now.offload.pipeline == offload::Pipeline::serial);
  schedule.accept(**planned);
  REQUIRE_FALSE(schedule.planned(3)->has_value());
  // What is asked for later stands on what is in force.
  CHECK(schedule.asked(3, {"density=0.5"})->now.offload.buffers == 3);
}

TEST_CASE("a planned change that is wrong names its step") {
  const std::vector<PlannedChange> changes = {{2, {"buffers=0"}}};
  const KnobSchedule schedule(config_with(1, 0), changes);
  const auto planned = schedule.planned(2);
  REQUIRE_FALSE(planned.ok());
  CHECK_THAT(planned.error().message(), Catch::Contains("--at 2"));
}

TEST_CASE("the warm-up lowers the density in four stretches, below what is asked for meanwhile") {
  KnobSchedule schedule(config_with(0.0001, 8), {});
  std::vector<double> densities;
  for (std::int64_t step = 0; step < 10; ++step) {
    const auto planned = schedule.planned(step);
    if (!planned->has_value()) continue;
    densities.push_back((*planned)->now.offload.density);
    CHECK((*planned)->after_warmup.offload.density == 0.0001);
    schedule.accept(**planned);
  }
  REQUIRE(densities.size() == 5);
  CHECK(densities[0] == 1);
  CHECK(densities[1] == Approx(0.1));
  CHECK(densities[4] == 0.0001);
  const auto asked = schedule.asked(2, {"density=0.01"});
  REQUIRE(asked.ok());
  CHECK(asked->after_warmup.offload.density == 0.01);
  CHECK(asked->now.offload.density == Approx(0.316).epsilon(0.01));
  REQUIRE_FALSE(schedule.asked(2, {"density=nan"}).ok());
}
