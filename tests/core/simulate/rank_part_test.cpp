// A step of one of several ranks in simulated time: its sums cross the cluster's links, they hide
// behind backward where links are fast, and without time they change nothing.

#include "core/simulate/rank_part.h"

#include "core/plan/run_plan.h"
#include "core/shard/collectives.h"
#include "tests/core/simulate/sample_plan.h"

using namespace sluice;
using namespace sluice::simulate;

namespace {

plan::RunPlan plan_of_ranks(int ranks, const platform::ClusterLink& link) {
  settings::RunConfig config = sample_config("gpt2-0.34b", "smartssd-2x4", {"devices=2"});
  config.batch.rank_count = ranks;
  auto plan = plan::plan_run(config);
  REQUIRE(plan.ok());
  plan->platform.cluster->within = plan->platform.cluster->between = link;
  return std::move(*plan);
}

SimulatedStep step_of(plan::RunPlan plan) {
  const auto part = RankPart::take(plan);
  INFO((part.ok() ? std::string() : part.error().message()));
  REQUIRE(part.ok());
  auto step = simulate_rank(plan, *part);
  REQUIRE(step.ok());
  return std::move(*step);
}

}  // namespace

TEST_CASE("sums that take no time leave a step as it is without other ranks") {
  const platform::ClusterLink instant{.bytes_per_s = 1e18, .latency_ns = 0};
  const plan::RunPlan plan = plan_of_ranks(8, instant);
  const SimulatedStep alone = simulated(plan);
  const SimulatedStep among = step_of(plan);
  // A sum of no bytes still ends at a whole nanosecond, once a layer.
  const auto layers = static_cast<double>(plan.layout.layer_count());
  CHECK(among.total_seconds == Approx(alone.total_seconds).margin(4e-9 * layers));
  CHECK(moved_bytes(among, "host") == moved_bytes(alone, "host"));
}

TEST_CASE(
    "a rank sends around the ring what its gradients are, and a slow link shows in the step") {
  double before_seconds = 0;
  for (const double bytes_per_s : {100e9, 2e9, 0.5e9}) {
    const plan::RunPlan plan = plan_of_ranks(8, {.bytes_per_s = bytes_per_s, .latency_ns = 5'000});
    const SimulatedStep step = step_of(plan);
    std::int64_t edge_bytes = 0;
    for (std::int32_t l = 0; l < plan.layout.layer_count(); ++l) {
      edge_bytes += shard::ring_edge_bytes(shard::Collective::all_reduce,
                                           4 * plan.layout.layer(LayerId{l}).count, 8);
    }
    for (const char* link : {"rank.within", "node.between", "all_reduce 2x4"}) {
      CHECK(moved_bytes(step, link)[0] == static_cast<double>(edge_bytes));
    }
    CHECK(step.total_seconds >= static_cast<double>(edge_bytes) / bytes_per_s);
    CHECK(step.total_seconds > before_seconds);
    before_seconds = step.total_seconds;
  }
}

TEST_CASE("ranks want a cluster, and to be a part of it") {
  settings::RunConfig config = sample_config("gpt2-0.34b", "smartssd-a5000", {"devices=2"});
  config.batch.rank_count = 4;
  auto plan = plan::plan_run(config);
  REQUIRE(plan.ok());
  const auto without = RankPart::take(*plan);
  REQUIRE_FALSE(without.ok());
  CHECK_THAT(without.error().message(), Catch::Contains("no [cluster], whose links 4 ranks"));
  plan::RunPlan five = plan_of_ranks(5, {.bytes_per_s = 1e9});
  const auto part = RankPart::take(five);
  REQUIRE_FALSE(part.ok());
  CHECK_THAT(part.error().message(), Catch::Contains("5 ranks are no part"));
}
