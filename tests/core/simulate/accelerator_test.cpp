// Accelerators behind links: what crosses them in a simulated step, and what that costs.

#include <catch2/catch.hpp>

#include "core/model/compute_device.h"
#include "core/plan/run_plan.h"
#include "tests/core/simulate/sample_plan.h"

using namespace sluice;
using namespace sluice::simulate;

namespace {

SimulatedStep simulated_on(const std::string& platform, std::vector<std::string> settings) {
  settings.insert(settings.end(), {"devices=10", "pipeline=handover"});
  return simulated(sample_plan("gpt2-2.5b", platform, settings));
}

// Bytes of all links with that ending.
std::int64_t moved(const SimulatedStep& step, const std::string& ending, Phase phase,
                   platform::Direction direction) {
  std::int64_t sum = 0;
  for (const LinkUse& link : step.links) {
    if (!link.name.ends_with(ending)) continue;
    sum += link.size_bytes[static_cast<std::size_t>(phase)][static_cast<std::size_t>(direction)];
  }
  return sum;
}

std::int64_t parameter_count() {
  const auto shape = model::load_model_shape(sample_model("gpt2-2.5b"));
  REQUIRE(shape.ok());
  return shape->flat_layout().parameter_count;
}

std::int64_t batch_bytes() {
  const plan::RunPlan plan = sample_plan("gpt2-2.5b", "smartssd-a4000-switch", {});
  return model::batch_bytes(plan.shape, plan.config.batch.batch, plan.config.batch.sequence);
}

}  // namespace

TEST_CASE("parameters cross the host link twice and gradients once, however many accelerators") {
  using platform::Direction;
  const std::int64_t count = parameter_count();
  for (const int accelerators : {1, 2, 3}) {
    INFO(accelerators);
    const SimulatedStep step =
        simulated_on("smartssd-a4000-switch", {fmt::format("accelerators={}", accelerators)});
    CHECK(moved(step, "host", Phase::forward, Direction::write) == 2 * count + batch_bytes());
    CHECK(moved(step, "host", Phase::backward, Direction::read) == 2 * count + model::kLossBytes);
    CHECK(moved(step, "host", Phase::backward, Direction::write) == 2 * count + 4 * count);
    // Each accelerator receives all of a layer, and of the sum of its gradients what others hold.
    const std::int64_t peers = 2 * count * (accelerators - 1);
    CHECK(moved(step, ".link", Phase::forward, Direction::write) ==
          2 * count * accelerators + batch_bytes());
    CHECK(moved(step, ".link", Phase::backward, Direction::write) ==
          2 * count * accelerators + peers);
    CHECK(moved(step, ".link", Phase::backward, Direction::read) == 2 * count + model::kLossBytes);
  }
}

TEST_CASE("on a shared switch forward cannot be faster than the parameters cross it") {
  const auto forward = [](const SimulatedStep& step) {
    return step.seconds[static_cast<std::size_t>(Phase::forward)];
  };
  const double crossing = 2.0 * static_cast<double>(parameter_count()) / 8e9;
  const SimulatedStep congested = simulated_on("smartssd-a4000-switch", {"accelerators=3"});
  CHECK(forward(congested) > crossing);
  CHECK(forward(congested) < 1.1 * crossing);
  // On a path of its own the accelerator computes longer than it is fed.
  const SimulatedStep own_path = simulated_on("smartssd-a5000", {});
  CHECK(forward(own_path) < crossing);
}

TEST_CASE("more accelerators than there are is an error") {
  const auto plan = plan::plan_run(sample_config("tiny", "smartssd-a5000", {"accelerators=2"}));
  REQUIRE(!plan.ok());
  CHECK_THAT(plan.error().message(), Catch::Contains("2 accelerators were asked for"));
}
