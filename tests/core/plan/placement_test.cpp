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

TEST_CASE("state in fewer bytes is said with the bytes that it takes") {
  const auto state_with = [](const std::string& format) {
    const std::string text =
        placement_with({"method=host", "state_format=" + format, "subgroup_elements=102400"});
    const std::size_t begin = text.find("optimizer state: ");
    REQUIRE(begin != text.npos);
    return text.substr(begin, text.find(';', begin) - begin);
  };
  CHECK(state_with("fp32") == "optimizer state: drives, 39.1 MB");
  CHECK(state_with("exact") == "optimizer state: drives, 39.1 MB");
  CHECK(state_with("compact") == "optimizer state: drives, 19.8 MB");
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
