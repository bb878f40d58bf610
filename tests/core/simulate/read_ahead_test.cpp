// State is read ahead before the step before is committed: a drive never waits with that until all
// drives have written.

#include <catch2/catch.hpp>

#include "core/plan/run_plan.h"
#include "tests/core/simulate/sample_plan.h"

using namespace sluice;
using namespace sluice::simulate;

namespace {

// GPT-2 124M on four full-duplex drives of 100 MB/s, three subgroups on each.
double step_seconds(const std::string& method, int buffers) {
  const std::vector<std::string> settings = {"method=" + method,
                                             "devices=4",
                                             "batch=8",
                                             "sequence=256",
                                             "subgroup_elements=10485760",
                                             fmt::format("buffers={}", buffers)};
  platform::Platform slow = platform::load_platform(sample_platform("laptop")).value();
  for (platform::Link& link : slow.links) {
    if (!link.name.ends_with(".drive") && !link.name.ends_with(".internal")) continue;
    link.read_bytes_per_s = link.write_bytes_per_s = 100e6;
    link.duplex = platform::Duplex::full;
    link.sharing = platform::Sharing::in_order;
    link.chunk_curve.clear();
  }
  const auto plan =
      plan::plan_run(sample_config("gpt2-124m", "laptop", settings),
                     model::load_model_shape(sample_model("gpt2-124m")).value(), slow);
  REQUIRE(plan.ok());
  return simulated(*plan).total_seconds;
}

}  // namespace

TEST_CASE("with a buffer for each subgroup a step is shorter than with one less") {
  const auto* const method = GENERATE("host", "csd");
  CAPTURE(method);
  CHECK(step_seconds(method, 3) < 0.9 * step_seconds(method, 2));
  CHECK(step_seconds(method, 2) < 0.9 * step_seconds(method, 1));
}
