// parameter_tier=storage in simulated steps: what moves over which links, and that reading goes on
// beside computing.

#include <cmath>

#include "core/offload/parameter_store.h"
#include "core/plan/memory_plan.h"
#include "core/plan/run_plan.h"
#include "tests/core/simulate/sample_plan.h"

using namespace sluice;
using namespace sluice::simulate;

namespace {

constexpr const char* kModel = "gpt2-0.34b";
constexpr const char* kPlatform = "smartssd-a5000";

// The highest layers, as many as the window holds, are still there when backward begins.
double reread_elements(const plan::RunPlan& plan, const model::FlatLayout& layout) {
  const std::int64_t buffer_bytes =
      offload::plan_parameter_window(layout, plan.options).buffer_bytes;
  std::int64_t kept_bytes = 0;
  std::int64_t elements = 0;
  bool has_room = true;
  for (std::size_t l = layout.layers.size(); l-- > 1;) {
    kept_bytes += offload::page_bytes(layout.layers[l], plan.options.parameter_kind);
    has_room = has_room && kept_bytes <= buffer_bytes;
    if (!has_room) elements += layout.layers[l].count;
  }
  return static_cast<double>(elements);
}

// A GPT of 8 layers, of which the drive has nothing to do but parameters before the update begins.
plan::RunPlan plan_with(double drive_bytes_per_s, const std::string& parameters) {
  const std::string rate = fmt::format("\"{} B/s\"", static_cast<std::int64_t>(drive_bytes_per_s));
  const std::string text =
      "name = 'one drive'\n[[link]]\nname = 'host'\nread = '1 TB/s'\nwrite = '1 TB/s'\nduplex = "
      "'full'\n"
      "[host]\nmemory = '64 GB'\nadamw = '1 Gelem/s'\nstage = '500 Gelem/s'\n"
      "[compute]\nmatmul = '1 TFLOP/s'\n[[device]]\nname = 'drive'\nvia = ['host']\n"
      "[device.drive]\nduplex = 'full'\nread = " +
      rate + "\nwrite = " + rate + "\n";
  const auto platform = platform::parse_platform(text, "drive.toml");
  REQUIRE(platform.ok());
  const std::vector<std::string> settings = {"method=host",
                                             "pipeline=serial",
                                             "devices=1",
                                             "batch=8",
                                             "sequence=256",
                                             "prefetch=false",
                                             "subgroup_elements=1000000",
                                             "gradient_tier=memory",
                                             "parameter_tier=" + parameters};
  const auto config = settings::parse_run_config(
      "name = 'ahead'\nmodel = 'm'\nplatform = 'p'\ntext = 'none'\n", "ahead.toml", settings);
  REQUIRE(config.ok());
  const auto plan = plan::plan_run(*config, {"eight", 8, 512, 8, 256, 256}, *platform);
  REQUIRE(plan.ok());
  return *plan;
}

double forward_seconds(const SimulatedStep& step) {
  return step.seconds[static_cast<std::size_t>(Phase::forward)];
}
double pass_seconds_of(const SimulatedStep& step) {
  return forward_seconds(step) + step.seconds[static_cast<std::size_t>(Phase::backward)];
}

}  // namespace

TEST_CASE("a simulated step reads its parameters over the host link, and writes them beside it") {
  for (const std::string pipeline : {"serial", "handover"}) {
    const std::vector<std::string> settings = {"method=csd", "pipeline=" + pipeline, "devices=4",
                                               "subgroup_elements=10000000"};
    const SimulatedStep plain = simulated(sample_plan(kModel, kPlatform, settings));
    std::vector<std::string> streamed = settings;
    streamed.emplace_back("parameter_tier=storage");
    const plan::RunPlan plan = sample_plan(kModel, kPlatform, streamed);
    const SimulatedStep step = simulated(plan);
    const auto all = static_cast<double>(plan.layout.parameter_count);
    INFO(pipeline);
    // Means are truncated by phase.
    CHECK(std::abs(moved_bytes(step, ".internal")[1] - moved_bytes(plain, ".internal")[1] -
                   2 * all) < 16);
    CHECK(std::abs(moved_bytes(step, ".internal")[0] - moved_bytes(plain, ".internal")[0]) < 16);
    // Nothing goes up; what a drive gives is its part of the state, the gradients and the layers.
    CHECK(std::abs(moved_bytes(step, ".drive")[0] - moved_bytes(plain, ".drive")[0] -
                   2 * (all + reread_elements(plan, plan.layout))) < 16);
  }
}

TEST_CASE("a simulated step with adapters reads the base beside them, and writes nothing of it") {
  const std::vector<std::string> settings = {"method=csd", "devices=4", "lora_rank=8",
                                             "subgroup_elements=1000000"};
  const SimulatedStep plain = simulated(sample_plan(kModel, kPlatform, settings));
  std::vector<std::string> streamed = settings;
  streamed.emplace_back("parameter_tier=storage");
  const plan::RunPlan plan = sample_plan(kModel, kPlatform, streamed);
  const SimulatedStep step = simulated(plan);
  const auto adapters = static_cast<double>(plan.layout.parameter_count);
  const auto base = static_cast<double>(plan.base->layout.parameter_count);
  CHECK(base == static_cast<double>(plan.shape.base_layout().parameter_count));
  const double read = adapters + reread_elements(plan, plan.layout) + base +
                      reread_elements(plan, plan.base->layout);
  CHECK(std::abs(moved_bytes(step, ".drive")[0] - moved_bytes(plain, ".drive")[0] - 2 * read) < 16);
  CHECK(std::abs(moved_bytes(step, ".internal")[1] - moved_bytes(plain, ".internal")[1] -
                 2 * adapters) < 16);
  // Its file lies behind that of the adapters, all of it once.
  std::int64_t file_bytes = 0;
  for (const DeviceId device : all_ids<DeviceId>(4))
    file_bytes += offload::base_file_bytes(plan.base.get(), device, plan.options);
  const std::int64_t base_bytes = 2 * plan.base->layout.parameter_count;
  CHECK(file_bytes >= base_bytes);
  CHECK(file_bytes < base_bytes + kPageBytes * std::ssize(plan.base->device_map));
}

TEST_CASE("a plan has all of a base, or a window of it, and a device the places of its layers") {
  const auto item = [](const MemoryItems& items, std::string_view what) {
    for (const MemoryItem& one : items) {
      if (one.what == what) return one.size_bytes;
    }
    return std::int64_t{0};
  };
  const std::vector<std::string> kept = {"method=csd", "devices=4", "lora_rank=8"};
  std::vector<std::string> streamed = kept;
  streamed.insert(streamed.end(), {"parameter_tier=storage", "parameter_buffer=40MB"});
  const plan::RunPlan whole = sample_plan(kModel, kPlatform, kept);
  const plan::RunPlan plan = sample_plan(kModel, kPlatform, streamed);
  const std::int64_t base_bytes = 2 * plan.shape.base_layout().parameter_count;
  const std::string_view all = "base weights (lora_rank)";
  const std::string_view window = "window of base weights (parameter_tier)";
  CHECK(item(plan::parameter_items(whole), all) == base_bytes);
  CHECK(item(plan::parameter_items(whole), window) == 0);
  CHECK(item(plan::parameter_items(plan), all) == 0);
  const std::int64_t tables = offload::page_bytes(plan.base->layout.layers[0], ParameterKind::bf16);
  CHECK(item(plan::parameter_items(plan), window) == tables + round_up(40'000'000, kPageBytes));

  std::vector<std::string> narrow = kept;
  narrow.insert(narrow.end(), {"parameter_tier=storage", "parameter_buffer=1MB"});
  const auto config = settings::parse_run_config(
      "name = 'n'\nmodel = 'm'\nplatform = 'p'\ntext = 'none'\n", "n.toml", narrow);
  REQUIRE(config.ok());
  const auto refused = plan::plan_run(*config, whole.shape, whole.platform);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().message().find("widest layer take") != std::string::npos);
}

TEST_CASE("layers come beside computing while the drive keeps up, and hold it up below that") {
  const plan::RunPlan kept = plan_with(1e9, "memory");
  const SimulatedStep plain = simulated(kept);
  // A block's parameters in the time of its forward.
  const double needed =
      static_cast<double>(2 * kept.layout.parameter_count) / forward_seconds(plain);
  const auto cost = [&](double share) {
    const SimulatedStep step = simulated(plan_with(share * needed, "storage"));
    INFO(share << " times the bandwidth that is needed");
    CHECK(forward_seconds(step) * share * needed >=
          static_cast<double>(2 * kept.layout.parameter_count) * 0.99);
    return pass_seconds_of(step) / pass_seconds_of(plain) - 1;
  };
  // The embedding and the first block come before anything is computed with.
  CHECK(cost(1.5) < 0.1);
  CHECK(cost(0.5) > 0.25);
}
