// Which tier holds what, in words.

#include "core/plan/placement.h"

#include <catch2/catch.hpp>

#include "core/plan/run_plan.h"

namespace sluice::plan {
namespace {

std::string placement_with(const std::vector<std::string>& settings) {
  std::vector<std::string> all = {"batch=2", "sequence=64", "devices=2",
                                  "subgroup_elements=100000"};
  all.insert(all.end(), settings.begin(), settings.end());
  const std::string samples = std::string(SLUICE_SOURCE_DIR) + "/sample_models/";
  auto config = settings::parse_run_config(
      fmt::format("model = \"{0}models/tiny.toml\"\nplatform = \"{0}platforms/laptop.toml\"\n"
                  "text = \"none\"\n",
                  samples),
      "test", all);
  INFO((config.ok() ? std::string() : config.error().message()));
  REQUIRE(config.ok());
  const auto plan = plan_run(*config);
  INFO((plan.ok() ? std::string() : plan.error().message()));
  REQUIRE(plan.ok());
  return placement_text(*plan);
}

TEST_CASE("all that may be in memory is said to be there") {
  CHECK(placement_with({"method=host", "gradient_tier=memory", "state_cache=100MB"}) ==
        "parameters: host memory, 6.52 MB; gradients: host memory; optimizer state: drives, "
        "39.1 MB, 39.1 MB of it also in host memory; activations: where they are computed");
}

TEST_CASE("each tensor that lies on the drives is said to, with what of it is in memory") {
  const std::string text =
      placement_with({"method=csd", "parameter_tier=storage", "density=0.01", "state_cache=5MB",
                      "activations=offload", "activation_buffer=1MiB"});
  CHECK(text.find("parameters: drives, 6.52 MB, at most ") == 0);
  CHECK(text.find("gradients: drives (0.01 of the elements); ") != text.npos);
  CHECK(text.find("of it also in the devices' memory; ") != text.npos);
  CHECK(text.find("activations: drives, ") != text.npos);
  CHECK(text.find(" a step, at most 1.05 MB of them on their way") != text.npos);
}

}  // namespace
}  // namespace sluice::plan
