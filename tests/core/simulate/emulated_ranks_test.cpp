// Four ranks that train by the emulated clock, on a machine that is slow as it is modelled, take
// what the simulated step of one of them says: with parts of everything, with the state alone in
// parts, and with activations that leave.

#include "core/simulate/rank_part.h"
#include "tests/core/train/shard_runs.h"
#include "tests/sanitizer.h"

using namespace sluice;

namespace {

// Everything takes so long that what this computer takes for it does not matter.
constexpr const char* kSlowPlatform = R"(name = "slow"
[host]
adamw = "400 kelem/s"
stage = "800 kelem/s"
checksum = "8 MB/s"
[compute]
matmul = "60 MFLOP/s"
[cluster]
ranks = 2
nodes = 2
within = { bandwidth = "3 MB/s", latency = "1 ms" }
between = { bandwidth = "2 MB/s", latency = "2 ms" }
[[device]]
name = "csd"
count = 2
via = []
memory = "1 GiB"
drive = { read = "3 MB/s", write = "2 MB/s", duplex = "half" }
internal = { read = "2 MB/s", write = "2 MB/s", duplex = "half" }
engine = { adamw = "300 kelem/s", launch = "1 ms" }
)";

constexpr int kRanks = 4;
constexpr double kTimeScale = 0.5;

struct RanksWay {
  std::string what;
  std::vector<std::string> settings;
};

std::vector<std::string> all_of(const SmallRun& files, const RanksWay& way) {
  std::vector<std::string> settings = {"platform=" + files.folder.file("slow.toml"),
                                       "mesh=2x2",
                                       "clock=emulated",
                                       fmt::format("time_scale={}", kTimeScale),
                                       "durability=never",
                                       "steps=6",
                                       "subgroup_elements=1000000"};
  settings.insert(settings.end(), way.settings.begin(), way.settings.end());
  return settings;
}

// The arithmetic model keeps other blocks than GPT-2, by which a plan goes.
void keep_as_arithmetic_model(plan::RunPlan& plan) {
  if (!plan.activations.offloads_anything()) return;
  for (std::int32_t l = 1; l < plan.layout.layer_count(); ++l) {
    plan.activations.layer_blocks[static_cast<std::size_t>(l)] = {
        4 * plan.layout.layer(LayerId{l}).count, 4};
  }
}

double simulated_seconds(const SmallRun& files, const RanksWay& way) {
  auto config = files.config(all_of(files, way));
  INFO((config.ok() ? std::string() : config.error().message()));
  REQUIRE(config.ok());
  config->batch.rank_count = kRanks;
  auto plan = plan::plan_run(*config);
  INFO((plan.ok() ? std::string() : plan.error().message()));
  REQUIRE(plan.ok());
  keep_as_arithmetic_model(*plan);
  const auto part = simulate::RankPart::take(*plan);
  INFO((part.ok() ? std::string() : part.error().message()));
  REQUIRE(part.ok());
  const auto step = simulate::simulate_rank(*plan, *part);
  REQUIRE(step.ok());
  return step->total_seconds;
}

// No step is shorter than the modelled machine's; others this computer held up.
double shortest_step_seconds(const SmallRun& files, const RanksWay& way) {
  const Trained trained =
      require_alike(train_ranks(files, {.rank_count = kRanks, .settings = all_of(files, way)}));
  TimeNs shortest_ns = std::numeric_limits<TimeNs>::max();
  for (std::size_t s = 2; s < trained.steps.size(); ++s) {
    shortest_ns = std::min(shortest_ns, trained.steps[s].total_ns);
  }
  return static_cast<double>(shortest_ns) / 1e9 / kTimeScale;
}

}  // namespace

TEST_CASE("four ranks by the emulated clock take what one of them takes in simulated time") {
  const std::vector<RanksWay> ways = {
      {"all in parts, on the devices",
       {"method=csd", "pipeline=handover", "shard_parameters=2x2", "shard_gradients=2x2",
        "shard_state=2x2"}},
      {"the state in parts, on the host",
       {"method=host", "pipeline=nbuffer", "shard_state=2x2", "grad_accum_steps=2"}},
      {"parts of different scopes, activations that leave",
       {"method=csd", "pipeline=nbuffer", "shard_parameters=2x1", "shard_gradients=2x2",
        "shard_state=2x2", "activations=offload", "activation_buffer=4096"}}};
  for (const RanksWay& way : ways) {
    const SmallRun files(2, 64);
    write_text(files.folder.file("slow.toml"), kSlowPlatform);
    INFO(way.what);
    const double simulated = simulated_seconds(files, way);
    const double emulated = shortest_step_seconds(files, way);
    CAPTURE(simulated, emulated);
    CHECK(emulated > 0.97 * simulated);
    // A sanitizer makes this computer slower than the machine that it stands in for.
    if (!kIsSanitized) CHECK(emulated < 1.06 * simulated);
  }
}
