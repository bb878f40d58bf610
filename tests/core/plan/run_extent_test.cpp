// Products of settings that are each within their range.

#include "core/plan/run_extent.h"

#include <catch2/catch.hpp>

#include "core/csd/device_memory.h"
#include "core/offload/assembly_plan.h"
#include "core/offload/offload_memory.h"
#include "core/plan/run_plan.h"

namespace sluice::plan {
namespace {

using Catch::Matchers::Contains;

std::string sample_path(const std::string& name) {
  return std::string(SLUICE_SOURCE_DIR) + "/sample_models/" + name + ".toml";
}

// The whole message; empty: the run can be planned.
std::string refusal_of(const std::string& model, const std::vector<std::string>& settings) {
  const std::string text = "model = '" + sample_path("models/" + model) + "'\nplatform = '" +
                           sample_path("platforms/smartssd-a5000") +
                           "'\ntext = 't'\ndevices = 10\nactivations = 'recompute'\n";
  const auto config = settings::parse_run_config(text, "made.toml", settings);
  INFO((config.ok() ? "" : config.error().message()));
  REQUIRE(config.ok());
  const auto plan = plan_run(*config);
  if (plan.ok()) return "";
  CHECK(plan.error().code() == ErrorCode::config);
  return plan.error().message();
}

TEST_CASE("too many subgroups are refused with the smallest subgroup_elements that would do") {
  for (const std::string model : {"gpt3-175b", "gpt2-124m"}) {
    for (const std::string elements : {"1", "64"}) {
      const std::string message = refusal_of(model, {"subgroup_elements=" + elements});
      INFO(message);
      CHECK_THAT(message, Contains("elements, not MiB") && Contains("262 144"));
      const std::string before = "that would do is ";
      const std::size_t at = message.find(before);
      REQUIRE(at != std::string::npos);
      const std::int64_t least = std::stoll(message.substr(at + before.size()));
      CHECK(refusal_of(model, {fmt::format("subgroup_elements={}", least)}).empty());
      CHECK_FALSE(refusal_of(model, {fmt::format("subgroup_elements={}", least - 1)}).empty());
    }
  }
  CHECK_THAT(refusal_of("gpt2-124m", {"subgroup_elements=64"}),
             Contains("subgroup_elements=64 (elements, not MiB): the 124 439 808 parameters of "
                      "gpt2-124m would be 1 944 372 subgroups"));
}

TEST_CASE("subgroups of split state are whole groups, or one is all there is") {
  for (const std::string format : {"exact", "compact"}) {
    const std::string set = "state_format=" + format;
    CHECK_THAT(refusal_of("tiny", {set, "subgroup_elements=10100"}),
               Contains("subgroup_elements=10100") && Contains(set) &&
                   Contains("groups of 64 elements; the next one is 10112"));
    CHECK(refusal_of("tiny", {set, "subgroup_elements=10112"}).empty());
    CHECK(refusal_of("tiny", {set, "subgroup_elements=100000001"}).empty());
  }
  CHECK(refusal_of("tiny", {"subgroup_elements=10100"}).empty());
}

TEST_CASE("more micro-batches than a step can have are refused with the most that would do") {
  CHECK(refusal_of("gpt2-124m", {"batch=1", "grad_accum_steps=65536"}).empty());
  CHECK_THAT(
      refusal_of("gpt3-175b", {"batch=1", "grad_accum_steps=65536"}),
      Contains("grad_accum_steps=65536") && Contains("the most micro-batches that would do"));
}

TEST_CASE("a step whose activations leave 64 bits is refused by its three settings") {
  model::ModelShape shape;
  shape.name = "wide";
  shape.layers = 100;
  shape.hidden = 1'000'000;
  shape.heads = 1000;
  shape.vocabulary = 100'000'000;
  settings::BatchConfig batch{.batch = 65536, .sequence = 1 << 20, .grad_accum_steps = 1000};
  const Status refused = check_step_extent(batch, shape);
  REQUIRE_FALSE(refused.ok());
  CHECK_THAT(
      refused.error().message(),
      Contains("batch=65536, sequence=1048576 and grad_accum_steps=1000") && Contains("wide"));
  batch = {.batch = 8, .sequence = 2048, .grad_accum_steps = 100};
  CHECK(check_step_extent(batch, shape).ok());
}

TEST_CASE("buffers, devices and requests at their largest are counted, not wrapped") {
  const std::string text = "model = '" + sample_path("models/gpt3-175b") + "'\nplatform = '" +
                           sample_path("platforms/smartssd-a5000") + "'\ntext = 't'\n";
  const auto config = settings::parse_run_config(
      text, "made.toml",
      std::vector<std::string>{"devices=10", "buffers=64", "method=host", "batch=1",
                               "subgroup_elements=17179869184", "io_bytes=64MiB",
                               "queue_depth=4096", "bounce_memory=1TB", "state_cache=1000TB"});
  REQUIRE(config.ok());
  const auto plan = plan_run(*config);
  INFO((plan.ok() ? "" : plan.error().message()));
  REQUIRE(plan.ok());
  const auto memory =
      offload::plan_offload_memory(plan->options, plan->geometry, plan->share.state);
  // 64 sets on 10 devices, each of three fp32 arrays and fp32 or 16-bit gradients.
  CHECK(memory.host_set_bytes >= 640 * (std::int64_t{3} * 4 + 2) * 17'179'869'184);
  CHECK(memory.host_set_bytes < 640 * (std::int64_t{3} * 4 + 5) * 17'179'869'184);
  CHECK(assembly_plan(*plan, csd::Payload::none).drive.inflight_bytes ==
        std::int64_t{4096} * (64 << 20));
}

}  // namespace
}  // namespace sluice::plan
