// What a collective of a run is charged: the formulas' time, over links that collectives share, in
// simulated time; and no less under the emulated clock, whatever its work takes.

#include "core/shard/collective_links.h"

#include <catch2/catch.hpp>
#include <random>

#include "core/runtime/clocks.h"
#include "core/runtime/sync.h"
#include "storage/io/io_engine.h"
#include "tests/core/shard/test_cluster.h"

namespace sluice::shard {
namespace {

platform::Platform test_platform(const platform::Cluster& cluster) {
  auto platform = platform::parse_platform(
      "name = \"test\"\n[host]\n[compute]\nmatmul = \"1 TFLOP/s\"\n[cluster]\nranks = 1\n"
      "nodes = 1\n",
      "test.toml");
  REQUIRE(platform.ok());
  platform->cluster = cluster;
  return std::move(*platform);
}

// Every collective in every kind of group of a legal triple.
std::vector<CollectiveKind> all_kinds(const Scope& mesh) {
  std::vector<CollectiveKind> kinds;
  for (const Triple& triple : all_triples(mesh)) {
    for (const GroupShape& group : {parameter_group(triple), gradient_group(triple),
                                    state_group(triple), data_group(triple, mesh)}) {
      if (group.scope.size() == 1) continue;
      for (const Collective collective : platform::kCollectives) {
        kinds.push_back({collective, group});
      }
    }
  }
  return kinds;
}

runtime::Operation collective_operation(runtime::Runtime& runtime, const CollectiveLinks& links,
                                        const CollectiveKind& kind, std::int64_t size_bytes) {
  runtime::Operation operation;
  operation.runtime = &runtime;
  operation.label.stage = stages::Stage::all_reduce;
  links.charge(operation, kind, size_bytes);
  return operation;
}

runtime::Task<Status> await_it(runtime::Operation operation) {
  Status status = co_await operation;
  co_return status;
}

runtime::Task<Status> await_both(runtime::Runtime& runtime, runtime::Operation a,
                                 runtime::Operation b) {
  runtime::TaskGroup group(runtime);
  group.spawn(await_it(a));
  group.spawn(await_it(b));
  Status status = co_await group.join();
  co_return status;
}

runtime::Runtime simulated(const platform::Platform& platform) {
  return runtime::Runtime(
      std::make_unique<runtime::SimulatedClock>(platform, runtime::Disturbance{}));
}

}  // namespace

TEST_CASE("a collective takes in simulated time what the formulas say, in every group there is") {
  const Scope mesh{2, 8};
  std::mt19937_64 random(7);
  for (const platform::Cluster& cluster :
       {test_cluster(mesh, 8), test_cluster(mesh, 2), measured_cluster(mesh, random)}) {
    platform::Platform platform = test_platform(cluster);
    const std::vector<CollectiveKind> kinds = all_kinds(mesh);
    const auto links = CollectiveLinks::add_to(platform, kinds);
    runtime::Runtime runtime = simulated(platform);
    for (const CollectiveKind& kind : kinds) {
      for (const std::int64_t size_bytes : {std::int64_t{16} << 10, std::int64_t{5} << 20}) {
        const TimeNs before_ns = runtime.now_ns();
        REQUIRE(
            runtime.run(await_it(collective_operation(runtime, *links, kind, size_bytes))).ok());
        const double found = static_cast<double>(runtime.now_ns() - before_ns);
        const double wanted =
            1e9 * collective_cost(cluster, kind.collective, size_bytes, kind.group).seconds;
        // Measured ones are links with a curve in steps.
        CHECK(found == Approx(wanted).margin(2).epsilon(cluster.collectives.empty() ? 1e-6 : 1e-3));
      }
    }
  }
}

TEST_CASE("collectives of two groups share the links that both cross") {
  const Scope mesh{4, 2};
  platform::Cluster cluster = test_cluster(mesh, 2);
  cluster.within.latency_ns = cluster.between.latency_ns = 0;
  platform::Platform platform = test_platform(cluster);
  const std::size_t link_count = platform.links.size();
  const CollectiveKind gather{Collective::all_gather, {.scope = {4, 1}}};
  const CollectiveKind reduce{Collective::all_reduce, {.scope = {2, 1}}};
  const std::vector<CollectiveKind> kinds = {gather, reduce, gather};
  const auto links = CollectiveLinks::add_to(platform, kinds);
  CHECK(platform.links.size() == link_count + 3 + 2);  // a kind has one link, however often it is
  runtime::Runtime runtime = simulated(platform);
  // 24 MB over each edge, either way.
  REQUIRE(runtime
              .run(await_both(runtime, collective_operation(runtime, *links, gather, 32'000'000),
                              collective_operation(runtime, *links, reduce, 24'000'000)))
              .ok());
  CHECK(runtime.now_ns() == Approx(2 * 24e6 / cluster.within.bytes_per_s * 1e9).margin(2));
}

TEST_CASE("a group of one rank costs nothing") {
  platform::Platform platform = test_platform(test_cluster({4, 2}, 2));
  const CollectiveKind alone{Collective::all_gather, {}};
  const auto links = CollectiveLinks::add_to(platform, {&alone, 1});
  runtime::Runtime runtime = simulated(platform);
  const runtime::Operation operation = collective_operation(runtime, *links, alone, 1 << 20);
  CHECK(operation.cost.route.empty());
}

TEST_CASE("under the emulated clock a collective ends no sooner than the platform says") {
  platform::Cluster cluster = test_cluster({2, 1}, 1);
  cluster.within = {.bytes_per_s = 1e9, .latency_ns = 1'000'000};
  platform::Platform platform = test_platform(cluster);
  const CollectiveKind sum{Collective::all_reduce, {.scope = {2, 1}}};
  const auto links = CollectiveLinks::add_to(platform, {&sum, 1});
  constexpr double kTimeScale = 2;
  io::IoEngineOptions options;
  options.kind = io::IoEngineKind::posix;
  auto engine = io::open_io_engine(options);
  REQUIRE(engine.ok());
  auto executor = runtime::WorkExecutor::make(std::move(*engine), {});
  REQUIRE(executor.ok());
  runtime::Runtime runtime(
      std::make_unique<runtime::EmulatedClock>(std::move(*executor), platform, kTimeScale));
  runtime::Operation operation = collective_operation(runtime, *links, sum, 3'000'000);
  bool is_done = false;
  operation.work.kind = runtime::WorkKind::function;
  operation.work.function = [&is_done]() -> Status {
    is_done = true;
    return ok_status();
  };
  const TimeNs before_ns = runtime.now_ns();
  REQUIRE(runtime.run(await_it(std::move(operation))).ok());
  CHECK(is_done);
  CHECK(runtime.now_ns() - before_ns >= static_cast<TimeNs>(kTimeScale * (2e6 + 3e6)) - 2);
}

TEST_CASE("a run may have some ranks of a node, or whole nodes that fill leaf switches") {
  const platform::Cluster cluster = test_cluster({4, 8}, 2);
  const auto cut = [&cluster](std::int32_t ranks) -> std::string {
    const auto found = cut_to_ranks(cluster, ranks);
    if (!found.ok()) return found.error().message();
    return fmt::format("{} under {}", platform::scope_text(found->mesh), found->nodes_a_leaf);
  };
  CHECK(cut(2) == "2x1 under 1");
  CHECK(cut(4) == "4x1 under 1");
  CHECK(cut(8) == "4x2 under 2");
  CHECK(cut(24) == "4x6 under 2");
  CHECK(cut(32) == "4x8 under 2");
  for (const std::int32_t ranks : {5, 12, 33, 40}) {
    CHECK_THAT(cut(ranks),
               Catch::Contains(fmt::format("{} ranks are no part of a [cluster] of 4x8", ranks)));
  }
}

}  // namespace sluice::shard
