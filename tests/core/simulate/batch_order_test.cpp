// The other order of micro-batches against that of a run: what crosses the accelerator's link, to
// the byte.

#include "core/simulate/batch_order.h"

#include <algorithm>

#include "tests/core/simulate/sample_plan.h"

using namespace sluice;
using namespace sluice::simulate;

namespace {

plan::RunPlan plan_with(const std::vector<std::string>& more) {
  std::vector<std::string> settings = {"method=host", "pipeline=serial", "devices=1", "batch=2"};
  settings.insert(settings.end(), more.begin(), more.end());
  return sample_plan("gpt2-0.34b", "smartssd-a5000", settings);
}

// Over the accelerator's own link in a step: into it, and out.
std::array<std::int64_t, 2> crossed(const SimulatedStep& step) {
  std::array<std::int64_t, 2> bytes{};
  for (const LinkUse& link : step.links) {
    if (!link.name.starts_with("accelerator")) continue;
    for (const auto& phase : link.size_bytes) {
      bytes[0] += phase[static_cast<std::size_t>(platform::Direction::write)];
      bytes[1] += phase[static_cast<std::size_t>(platform::Direction::read)];
    }
  }
  return bytes;
}

}  // namespace

TEST_CASE("in the other order parameters cross twice and gradients once for every micro-batch") {
  constexpr std::int64_t kCount = 4;
  const plan::RunPlan plan = plan_with({"grad_accum_steps=4"});
  const SimulatedStep by_layers = simulated(plan);
  const auto other = simulate_by_batches(plan);
  INFO((other.ok() ? std::string() : other.error().message()));
  REQUIRE(other.ok());
  const std::int64_t parameters = plan.layout.parameter_count;
  const auto [in, out] = crossed(by_layers);
  const auto [other_in, other_out] = crossed(*other);
  CHECK(other_in - in == 2 * (kCount - 1) * 2 * parameters);
  const std::int64_t gradient_bytes = optimizer::bytes_of(plan.options.gradient_kind);
  CHECK(other_out - out == (kCount - 1) * gradient_bytes * parameters);
  CHECK(other->total_seconds > by_layers.total_seconds);
}

TEST_CASE("the other order is said to make no difference where it makes none") {
  const auto refusal = [](const std::vector<std::string>& settings) {
    const plan::RunPlan plan = plan_with(settings);
    const auto step = simulate_by_batches(plan);
    REQUIRE_FALSE(step.ok());
    CHECK(step.error().message().find(why_no_other_order(plan)) != std::string::npos);
    return why_no_other_order(plan);
  };
  CHECK(refusal({}) == "there is one micro-batch");
  CHECK(refusal({"grad_accum_steps=2", "activations=offload"}) ==
        "activations leave by the order of a run");
  CHECK(why_no_other_order(plan_with({"grad_accum_steps=2"})).empty());
}
