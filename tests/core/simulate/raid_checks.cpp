#include "tests/core/simulate/raid_checks.h"

#include <algorithm>

#include "core/plan/run_plan.h"
#include "tests/core/simulate/published_rows.h"
#include "tests/core/simulate/sample_plan.h"

namespace sluice::simulate {
namespace {

using platform::Direction;

const std::string kServer = "raid-4gpu";

struct Logged {
  const char* model;
  double forward, backward, update, step;  // seconds
  double parameters;                       // as printed, with three digits of a billion
  double largest_subgroup;                 // elements, on each of four ranks
};
// The logs call them 52B and 100B.
const std::vector<Logged> kLogged = {{"llama-44b", 0.65, 28.4, 209.7, 238.6, 44.278e9, 169.7e6},
                                     {"llama-106b", 1.38, 68.3, 502.1, 572.0, 105.885e9, 211.8e6}};

plan::RunPlan plan_of(const std::string& model) {
  return sample_plan(model, kServer, {"method=host", "pipeline=serial"});
}

double seconds_of(const SimulatedStep& step, Phase phase) {
  return step.seconds[static_cast<std::size_t>(phase)];
}

std::vector<PublishedRow> rows() {
  std::vector<PublishedRow> rows;
  for (const Logged& logged : kLogged) {
    const SimulatedStep step = simulated(plan_of(logged.model));
    const auto add = [&](const char* what, double published, double simulated) {
      rows.push_back({fmt::format("{}, {}", logged.model, what), published, simulated});
    };
    add("forward", logged.forward, seconds_of(step, Phase::forward));
    add("backward", logged.backward, seconds_of(step, Phase::backward));
    add("update", logged.update, seconds_of(step, Phase::update));
    add("step", logged.step, step.total_seconds);
  }
  return rows;
}

// Half of each rate that raid-4gpu.toml assumes.
platform::Platform with_assumed_halved(platform::Platform platform) {
  int halved = 0;
  for (platform::Link& link : platform.links) {
    if (link.name == "raid.drive") continue;
    link.read_bytes_per_s /= 2;
    link.write_bytes_per_s /= 2;
    ++halved;
  }
  CHECK(halved == 1 + 4);  // the slots, and a link of each accelerator
  platform.engine(platform.host_engine).rate.at("stage") /= 2;
  return platform;
}

}  // namespace

std::string raid_checks_text() {
  return "## Four GPUs and a RAID\n\n"
         "MLP-Offload's logs (SC 2025) have ZeRO-Infinity on one node: four GPUs, one RAID, "
         "micro-batches of one sequence of\n"
         "2048 tokens on each GPU. They call the models 52B and 100B. Rows are held to 10 "
         "%.\n\n"
         "    sluice simulate sample_models/models/llama-44b.toml --set method=host \\\n"
         "        --set pipeline=serial --platform sample_models/platforms/raid-4gpu.toml\n\n" +
         published_table("s", rows()) +
         "5.96 GB/s, reads and writes together, is derived from the updates, which read 16 "
         "bytes a parameter and write 12. The\n"
         "logs name neither GPUs nor drives; half of each assumed rate changes backward and "
         "update by at most 1 %.\n\n";
}

TEST_CASE("simulated ZeRO-Infinity on four GPUs and a RAID is within 10 % of the published one") {
  require_within(rows(), 0.10);
}

TEST_CASE("the Llamas of the logs have the parameters and the blocks that they print") {
  for (const Logged& logged : kLogged) {
    INFO(logged.model);
    const model::FlatLayout layout = plan_of(logged.model).layout;
    CHECK(std::abs(static_cast<double>(layout.parameter_count) - logged.parameters) < 0.0005e9);
    const double a_rank = static_cast<double>(layout.layers[1].count) / 4;
    CHECK(std::abs(a_rank - logged.largest_subgroup) < 0.05e6);
  }
}

TEST_CASE("its update moves 28 bytes a parameter, and its backward writes 4") {
  for (const Logged& logged : kLogged) {
    const plan::RunPlan plan = plan_of(logged.model);
    const SimulatedStep step = simulated(plan);
    const auto drive = std::ranges::find(step.links, "raid.drive", &LinkUse::name);
    REQUIRE(drive != step.links.end());
    const auto bytes = [&](Phase phase, Direction direction) {
      return drive
          ->size_bytes[static_cast<std::size_t>(phase)][static_cast<std::size_t>(direction)];
    };
    const std::int64_t parameters = plan.layout.parameter_count;
    CHECK(bytes(Phase::backward, Direction::write) == 4 * parameters);
    CHECK(bytes(Phase::backward, Direction::read) == 0);
    CHECK(bytes(Phase::update, Direction::read) == 16 * parameters);
    CHECK(bytes(Phase::update, Direction::write) == 12 * parameters);
  }
}

TEST_CASE("what the server's platform file assumes bounds neither backward nor update") {
  for (const Logged& logged : kLogged) {
    plan::RunPlan plan = plan_of(logged.model);
    const SimulatedStep as_assumed = simulated(plan);
    plan.platform = with_assumed_halved(plan.platform);
    const SimulatedStep halved = simulated(plan);
    for (const Phase phase : {Phase::backward, Phase::update}) {
      CHECK(seconds_of(halved, phase) == Approx(seconds_of(as_assumed, phase)).epsilon(0.01));
    }
  }
}

}  // namespace sluice::simulate
