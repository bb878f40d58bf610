// State is read ahead before the step before is committed: a drive never waits with that until all
// drives have written.

#include <catch2/catch.hpp>

#include "core/train/simulation.h"

using namespace sluice;
using namespace sluice::train;

namespace {

const std::string kSamples = SLUICE_SOURCE_DIR "/sample_models";

// GPT-2 124M on four full-duplex drives of 100 MB/s, three subgroups on each.
double step_seconds(const std::string& method, int buffers) {
  const std::string model = kSamples + "/models/gpt2-124m.toml";
  const std::string file = kSamples + "/platforms/laptop.toml";
  const std::vector<std::string> settings = {"method=" + method,
                                             "devices=4",
                                             "batch=8",
                                             "sequence=256",
                                             "subgroup_elements=10485760",
                                             fmt::format("buffers={}", buffers)};
  platform::Platform slow = platform::load_platform(file).value();
  for (platform::Link& link : slow.links) {
    if (!link.name.ends_with(".drive") && !link.name.ends_with(".internal")) continue;
    link.read_bytes_per_s = link.write_bytes_per_s = 100e6;
    link.duplex = platform::Duplex::full;
    link.sharing = platform::Sharing::in_order;
    link.chunk_curve.clear();
  }
  const RunPlan plan = plan_run(simulation_config(model, file, settings).value(),
                                model::load_model_shape(model).value(), slow)
                           .value();
  return simulate_step(plan).value().total_seconds;
}

}  // namespace

TEST_CASE("with a buffer for each subgroup a step is shorter than with one less") {
  const auto* const method = GENERATE("host", "csd");
  CAPTURE(method);
  CHECK(step_seconds(method, 3) < 0.9 * step_seconds(method, 2));
  CHECK(step_seconds(method, 2) < 0.9 * step_seconds(method, 1));
}
