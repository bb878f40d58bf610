// The schedule of ranks with their state in memory, in simulated time: what it does is AMSP's table
// whatever overlaps, and what each overlap is worth.

#include "core/simulate/rank_step.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "core/runtime/clocks.h"
#include "core/simulate/memory_rank.h"
#include "tests/core/shard/test_cluster.h"

namespace sluice::simulate {
namespace {

using platform::Scope;
using shard::Collective;
using shard::CollectiveUse;
using shard::Overlap;
using shard::Overlaps;
using shard::Purpose;
using shard::StepShape;
using shard::Triple;
using stages::Stage;
using LayerCosts = std::vector<plan::LayerCost>;

platform::Platform platform_of_ranks(const platform::Cluster& cluster) {
  auto platform = platform::parse_platform(
      "name = \"test\"\n[host]\n[compute]\nmatmul = \"1 TFLOP/s\"\n[cluster]\nranks = 1\n"
      "nodes = 1\n",
      "test.toml");
  REQUIRE(platform.ok());
  platform->cluster = cluster;
  return std::move(*platform);
}

StepShape test_step(std::int64_t micro_batches) {
  return {
      .module_elements = {40'000'000, 12'000'000, 12'000'000, 12'000'000, 12'000'000, 8'000'000},
      .micro_batches = micro_batches,
      .bucket_bytes = 4'000'000};
}

LayerCosts test_times(const StepShape& step, TimeNs a_million_ns) {
  LayerCosts times;
  for (const std::int64_t elements : step.module_elements) {
    const TimeNs forward_ns = elements / 1'000'000 * a_million_ns;
    times.push_back({forward_ns, 2 * forward_ns});
  }
  return times;
}

ShardedStep simulated(const platform::Cluster& cluster, const StepShape& step,
                      const LayerCosts& times, const Triple& triple, const Overlaps& overlaps) {
  const auto taken = memory_rank_step(platform_of_ranks(cluster), step, times, triple, overlaps);
  INFO((taken.ok() ? "" : taken.error().message()));
  REQUIRE(taken.ok());
  return *taken;
}

struct StepSum {
  std::int64_t count = 0;
  std::int64_t size_bytes = 0;
};
StepSum table_sum(const StepShape& step, const Triple& triple, const Scope& mesh,
                  Collective collective) {
  StepSum sum;
  for (const CollectiveUse& use : shard::step_collectives(step, triple, mesh)) {
    if (use.collective != collective) continue;
    sum.count += use.count;
    sum.size_bytes +=
        use.count * shard::ring_edge_bytes(collective, use.size_bytes, use.group.scope.size());
  }
  return sum;
}

constexpr std::pair<Stage, Collective> kStagesOf[] = {
    {Stage::all_gather, Collective::all_gather},
    {Stage::reduce_scatter, Collective::reduce_scatter},
    {Stage::all_reduce, Collective::all_reduce},
    {Stage::broadcast, Collective::broadcast}};

TEST_CASE("a step's collectives are those of the table on all triples, whatever overlaps") {
  const Scope mesh{2, 4};
  const platform::Cluster cluster = shard::test_cluster(mesh, 2);
  for (const Triple& triple : shard::all_triples(mesh)) {
    for (const std::int64_t micro_batches : {1, 4}) {
      for (const Overlaps& overlaps :
           {Overlaps::none(), Overlaps::all(), Overlaps::all().without(Overlap::keep_gathered)}) {
        StepShape step = test_step(micro_batches);
        step.gathers = gathers_of(true, overlaps);
        INFO(shard::triple_text(triple) << ", " << micro_batches << " micro-batches");
        const ShardedStep taken =
            simulated(cluster, step, test_times(step, 50'000), triple, overlaps);
        for (const auto& [stage, collective] : kStagesOf) {
          const StepSum wanted = table_sum(step, triple, mesh, collective);
          CHECK(taken.of(stage).count == wanted.count);
          CHECK(taken.of(stage).size_bytes == wanted.size_bytes);
        }
        CHECK(taken.of(Stage::forward).count == micro_batches * 6);
        CHECK(taken.of(Stage::backward).count == micro_batches * 6);
        CHECK(taken.of(Stage::update).count == 1);
      }
    }
  }
}

TEST_CASE(
    "without overlap a step takes what the formulas and the layers take, one after the other") {
  const Scope mesh{8, 8};
  for (const bool is_measured : {false, true}) {
    std::mt19937_64 random(3);
    const platform::Cluster cluster =
        is_measured ? shard::measured_cluster(mesh, random) : shard::test_cluster(mesh, 4);
    for (const Triple& triple : shard::all_triples(mesh)) {
      INFO(shard::triple_text(triple));
      StepShape step = test_step(2);
      step.gathers = gathers_of(true, Overlaps::none());
      const ShardedStep taken =
          simulated(cluster, step, test_times(step, 50'000), triple, Overlaps::none());
      const double communication = shard::communication_time(cluster, step, triple).total();
      // Each operation ends on a whole nanosecond.
      CHECK(taken.exposed_seconds() == Approx(communication).epsilon(0).margin(1e-9 * 200));
      CHECK(taken.compute_seconds == Approx(2 * 3 * 96 * 50e-6));
    }
  }
}

TEST_CASE("a layer of several modules is gathered at once, with the latencies of each") {
  const platform::Cluster cluster = shard::test_cluster({8, 8}, 4);
  const Triple triple{{8, 2}, {8, 2}, {8, 4}};
  StepShape step = test_step(2);
  step.layer_modules = {1, 3, 2};
  const StepShape layers{.module_elements = {40'000'000, 36'000'000, 20'000'000}};
  const ShardedStep taken =
      simulated(cluster, step, test_times(layers, 50'000), triple, Overlaps::none());
  CHECK(taken.of(Stage::all_gather).count == 2 * 2 * 3);
  CHECK(taken.of(Stage::all_gather).size_bytes ==
        table_sum(step, triple, {8, 8}, Collective::all_gather).size_bytes);
  const double communication = shard::communication_time(cluster, step, triple).total();
  CHECK(taken.exposed_seconds() == Approx(communication).epsilon(0).margin(1e-9 * 200));
}

TEST_CASE("no overlap makes a step longer, and each is worth something where it can be") {
  const Scope mesh{8, 8};
  platform::Cluster cluster = shard::test_cluster(mesh, 4);
  const Triple triple{{8, 1}, {8, 1}, {8, 4}};
  const StepShape step = test_step(2);
  const LayerCosts times = test_times(step, 50'000);
  const double with_all = simulated(cluster, step, times, triple, Overlaps::all()).seconds;
  const double with_none = simulated(cluster, step, times, triple, Overlaps::none()).seconds;
  CHECK(with_all < with_none);
  for (std::size_t i = 0; i < shard::kOverlapCount; ++i) {
    const auto overlap = static_cast<Overlap>(i);
    INFO(shard::kOverlapNames[i]);
    StepShape other = step;
    const Overlaps others = Overlaps::all().without(overlap);
    other.gathers = gathers_of(true, others);
    const double without = simulated(cluster, other, times, triple, others).seconds;
    CHECK(without > with_all);
    CHECK(without < with_none * 1.2);  // a third gather is more than the others have
  }
}

TEST_CASE("with state in four parts the next forward waits for what it needs only") {
  const Scope mesh{1, 8};
  platform::Cluster cluster = shard::test_cluster(mesh, 8);
  const Triple zero1{{1, 1}, {1, 1}, {1, 8}};
  const StepShape step = test_step(1);
  const LayerCosts times = test_times(step, 50'000);
  const Overlaps early = Overlaps::all().without(Overlap::share_forward);
  const ShardedStep beside = simulated(cluster, step, times, zero1, Overlaps::all());
  const ShardedStep before = simulated(cluster, step, times, zero1, early);
  const double sharing = shard::communication_time(cluster, step, zero1).of(Purpose::share);
  CHECK(before.seconds - beside.seconds > 0.3 * sharing);
  CHECK(before.seconds - beside.seconds < sharing);
}

TEST_CASE(
    "where communication is as long as backward, overlaps leave a tenth of the step at most") {
  const Scope mesh{2, 4};
  const platform::Cluster cluster = shard::test_cluster(mesh, 4);
  const Triple triple{{2, 1}, {2, 1}, {2, 4}};
  StepShape step{.module_elements = std::vector<std::int64_t>(24, 12'000'000),
                 .bucket_bytes = 12'000'000};
  const double communication = shard::communication_time(cluster, step, triple).total();
  const auto backward_ns = static_cast<TimeNs>(communication / 24 * 1e9);
  const LayerCosts times(24, {backward_ns / 2, backward_ns});
  const ShardedStep taken = simulated(cluster, step, times, triple, Overlaps::all());
  CHECK(taken.exposed_seconds() <= 0.10 * taken.seconds);
  const ShardedStep bare = simulated(cluster, step, times, triple, Overlaps::none());
  CHECK(bare.exposed_seconds() == Approx(communication).epsilon(0.001));
}

// ---- a delayed scatter, and failures, by seed ----

struct Order final : runtime::OperationSink {
  void on_submit(const runtime::OperationState& state) override {
    const Stage stage = state.operation.label.stage;
    if (stage == Stage::all_reduce || stage == Stage::update) {
      // What is reduced or updated is scattered: no scatter of a layer above is under way.
      CHECK((stage == Stage::all_reduce || under_way[stages::index_of(Stage::all_reduce)] == 0));
      if (stage == Stage::update) CHECK(under_way[stages::index_of(Stage::reduce_scatter)] == 0);
    }
    under_way[stages::index_of(stage)] += 1;
    CHECK(under_way[stages::index_of(Stage::all_gather)] +
              under_way[stages::index_of(Stage::reduce_scatter)] <=
          1);
    CHECK(under_way[stages::index_of(Stage::all_reduce)] <= 1);
    CHECK(under_way[stages::index_of(Stage::broadcast)] <= 1);
  }
  void on_finish(const runtime::OperationState& state) override {
    under_way[stages::index_of(state.operation.label.stage)] -= 1;
  }
  std::array<int, stages::kStageCount> under_way{};
};

Status disturbed_steps(const runtime::Disturbance& disturbance, const Triple& triple) {
  const platform::Cluster cluster = shard::test_cluster({2, 4}, 2);
  const StepShape step = test_step(2);
  const LayerCosts times = test_times(step, 20'000);
  const RankMachine machine(platform_of_ranks(cluster), step, triple);
  runtime::Runtime runtime(
      std::make_unique<runtime::SimulatedClock>(machine.platform(), disturbance));
  SimulatedRank operations(runtime, machine, times);
  RankStep rank(runtime, operations, plan_rank(step, triple, cluster.mesh), Overlaps::all());
  Order order;
  runtime.add_sink(&order);
  for (int i = 0; i < 3; ++i) RETURN_IF_ERROR(runtime.run(rank.step()));
  return runtime.run(rank.settle());
}

TEST_CASE("whatever is late, nothing is reduced or updated before it is there") {
  for (const Triple& triple : shard::all_triples({2, 4})) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      INFO(shard::triple_text(triple) << ", seed " << seed);
      CHECK(disturbed_steps({.seed = seed, .delay_max_ns = 20'000'000}, triple).ok());
    }
  }
}

TEST_CASE("an operation that fails ends the step with its failure") {
  const Triple triple{{2, 1}, {2, 2}, {2, 2}};
  int failed_count = 0;
  for (std::int64_t n = 0; n < 250; n += 3) {
    const Status status =
        disturbed_steps({.seed = 7, .delay_max_ns = 1'000'000, .failing_operation = n}, triple);
    if (status.ok()) continue;
    ++failed_count;
    CHECK(status.error().code() != ErrorCode::cancelled);
  }
  CHECK(failed_count > 50);
}

}  // namespace
}  // namespace sluice::simulate
