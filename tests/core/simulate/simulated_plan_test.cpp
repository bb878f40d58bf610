// The planner of ranks with their state in memory against a search that simulates every sharding
// with every keeping of activations, and counts memory from the tables alone.

#include "core/simulate/simulated_plan.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <limits>
#include <random>

#include "core/shard/activation_memory.h"
#include "core/simulate/memory_rank.h"
#include "tests/core/shard/test_cluster.h"
#include "tests/core/simulate/drawn_run.h"

namespace sluice::simulate {
namespace {

using model::Activations;
using platform::Scope;
using shard::StepShape;
using shard::Triple;

platform::Platform drawn_platform(const Scope& mesh, Drawn& drawn) {
  // One after the other: in what order a call takes its arguments differs between compilers.
  const std::int64_t drive_read = drawn.between(1, 30);
  const std::int64_t step_us = drawn.between(0, 500);
  const std::int64_t rank_adamw = drawn.between(1, 20);
  const std::int64_t matmul = drawn.between(1, 200);
  auto platform = platform::parse_platform(
      fmt::format("name = \"test\"\n[host]\n[compute]\nmatmul = \"{} TFLOP/s\"\n[cluster]\n"
                  "ranks = 1\nnodes = 1\nadamw = \"{} Gelem/s\"\nstep = \"{} us\"\n"
                  "[[device]]\nname = \"drive\"\ncount = 2\nvia = []\ndrive = {{ read = \"{} "
                  "GB/s\", write = \"2 GB/s\", duplex = \"half\" }}\n",
                  matmul, rank_adamw, step_us, drive_read),
      "test.toml");
  REQUIRE(platform.ok());
  platform::Cluster cluster = shard::measured_cluster(mesh, drawn.random);
  cluster.update_elements_per_s = platform->cluster->update_elements_per_s;
  cluster.step_ns = platform->cluster->step_ns;
  platform->cluster = cluster;
  return std::move(*platform);
}

SimulatedPlanRequest drawn_request(Drawn& drawn) {
  constexpr Scope kMeshes[] = {{2, 2}, {4, 1}, {1, 4}, {2, 1}, {3, 2}};
  SimulatedPlanRequest request;
  request.run =
      drawn_run(drawn, [&] { return drawn_platform(kMeshes[drawn.between(0, 4)], drawn); }, 3);
  request.activations = {Activations::keep, Activations::recompute};
  const auto part = model::LayerActivations::parse("recompute:1,keep");
  REQUIRE(part.ok());
  request.activations.push_back(*part);
  request.state_tiers = {StateTier::memory};
  return request;
}

// ---- memory from the tables of docs/sharding.md, element by element ----

double all_of(const model::ModelShape& shape, std::int64_t layer, double tokens) {
  const auto hidden = static_cast<double>(shape.hidden);
  const bool is_head = layer == shape.layers + 1;
  // 2 bytes: inputs and results; 2 and 2 for each LayerNorm's rows; 4 for attention's sums.
  if (is_head) {
    return tokens * (2 * 3 * hidden + 2 * 2 + 2 * static_cast<double>(shape.vocabulary));
  }
  return tokens * (2 * 18 * hidden + 2 * 2 * 2 + 4 * static_cast<double>(shape.heads));
}

double activation_bytes(const ShardedRun& run, const model::LayerActivations& activations) {
  const auto tokens = static_cast<double>(run.batch * run.sequence);
  double sum = 0;
  double widest = 0;
  for (std::int64_t l = 1; l <= run.shape.layers + 1; ++l) {
    const double all = all_of(run.shape, l, tokens);
    const bool is_kept = activations.of(LayerId{static_cast<std::int32_t>(l)}) == Activations::keep;
    sum += is_kept ? all : 2 * tokens * static_cast<double>(run.shape.hidden);
    if (!is_kept) widest = std::max(widest, all);
  }
  return sum + widest;
}

std::int64_t memory_bytes(const ShardedRun& run) {
  const StepShape step = step_shape(run);
  const std::int64_t held = shard::held_elements(step, run.triple);
  const std::int64_t of_gradients = run.triple.gradients.size() / run.triple.parameters.size();
  const std::int64_t of_state = run.triple.state.size() / run.triple.parameters.size();
  std::int64_t bytes = 2 * held + 2 * ((held + of_gradients - 1) / of_gradients);
  bytes += std::min(run.bucket_bytes, 2 * held);
  bytes += 12 * ((held + of_state - 1) / of_state);
  if (run.triple.parameters.size() > 1) bytes += 6 * std::ranges::max(step.module_elements);
  return bytes + static_cast<std::int64_t>(activation_bytes(run, run.activations));
}

struct BestSimulated {
  double seconds = std::numeric_limits<double>::infinity();
  std::int64_t smallest_bytes = std::numeric_limits<std::int64_t>::max();
};

BestSimulated search_all(const SimulatedPlanRequest& request) {
  BestSimulated best;
  for (const Triple& triple : shard::all_triples(request.run.platform.cluster->mesh)) {
    for (const auto& activations : request.activations) {
      ShardedRun run = request.run;
      run.triple = triple;
      run.activations = activations;
      const std::int64_t bytes = memory_bytes(run);
      best.smallest_bytes = std::min(best.smallest_bytes, bytes);
      if (request.memory_cap_bytes > 0 && bytes > request.memory_cap_bytes) continue;
      const auto step = memory_rank_step(run);
      REQUIRE(step.ok());
      best.seconds = std::min(best.seconds, step->seconds);
    }
  }
  return best;
}

void check_smallest_cap(SimulatedPlanRequest request, const BestSimulated& best,
                        const Error& error) {
  CHECK(error.code() == ErrorCode::memory);
  CHECK(error.message().find(fmt::format("smallest cap that works is {} bytes",
                                         best.smallest_bytes)) != std::string::npos);
  request.memory_cap_bytes = best.smallest_bytes;
  CHECK(plan_by_simulation(request).ok());
  request.memory_cap_bytes -= 1;
  CHECK(!plan_by_simulation(request).ok());
}

TEST_CASE("the plan takes what the best of all simulated candidates takes, on 200 problems") {
  Drawn drawn(115);
  int infeasible_count = 0;
  int capped_count = 0;
  int spared_count = 0;
  for (int i = 0; i < 200; ++i) {
    INFO(i);
    SimulatedPlanRequest request = drawn_request(drawn);
    const std::int64_t smallest_bytes = search_all(request).smallest_bytes;
    if (drawn.between(0, 4) > 0) {
      request.memory_cap_bytes = drawn.between(smallest_bytes / 2, 4 * smallest_bytes);
    }
    const BestSimulated best = search_all(request);
    const auto plan = plan_by_simulation(request);
    REQUIRE(plan.ok() == (best.seconds < std::numeric_limits<double>::infinity()));
    if (!plan.ok()) {
      ++infeasible_count;
      check_smallest_cap(request, best, plan.error());
      continue;
    }
    CHECK(plan->is_exhaustive);
    CHECK(plan->best.step->seconds == best.seconds);
    CHECK(plan->best.memory.total_bytes() == memory_bytes(with_choices(request.run, plan->best)));
    CHECK(plan->bound_seconds <= best.seconds * (1 + 1e-9));
    for (const PlanCandidate& other : plan->others) {
      CHECK(other.step->seconds >= best.seconds);
      CHECK(other.step->seconds >= other.bound_seconds * (1 - 1e-9));
    }
    capped_count += plan->fitting_count < plan->candidate_count ? 1 : 0;
    spared_count += plan->simulated_count < plan->fitting_count ? 1 : 0;
  }
  CHECK(infeasible_count > 10);
  CHECK(capped_count > 50);
  CHECK(spared_count > 100);
}

TEST_CASE("a search that is ended says so, and has the best so far") {
  Drawn drawn(116);
  SimulatedPlanRequest request = drawn_request(drawn);
  int told = 0;
  request.on_try = [&](int tried) { told = tried; };
  request.stops = [&] { return told == 2; };
  const auto plan = plan_by_simulation(request);
  REQUIRE(plan.ok());
  CHECK(!plan->is_exhaustive);
  CHECK(plan->simulated_count == 2);
  REQUIRE(plan->others.size() == 1);
  CHECK(plan->best.step->seconds <= plan->others[0].step->seconds);
}

TEST_CASE("an update takes its elements at the cluster's rate, and what a step costs besides") {
  Drawn drawn(117);
  const ShardedRun run = drawn_request(drawn).run;
  const platform::Cluster& cluster = *run.platform.cluster;
  const std::int64_t owned = shard::owned_elements(step_shape(run), run.triple);
  const double seconds =
      static_cast<double>(shard::update_ns(cluster, step_shape(run), run.triple) -
                          cluster.step_ns) /
      1e9;
  CHECK(seconds == Approx(static_cast<double>(owned) / cluster.update_elements_per_s).margin(1e-9));
}

TEST_CASE("state on drives needs drives") {
  Drawn drawn(117);
  ShardedRun run = drawn_request(drawn).run;
  run.state_tier = StateTier::drives;
  CHECK(check_sharded(run).ok());
  run.platform.devices.clear();
  const Status refused = check_sharded(run);
  REQUIRE(!refused.ok());
  CHECK(refused.error().message().find("no [[device]]") != std::string::npos);
}

TEST_CASE("activations are all of a layer, its input, or nothing") {
  Drawn drawn(118);
  const ShardedRun run = drawn_request(drawn).run;
  const auto bytes = [&](const model::LayerActivations& activations) {
    return shard::kept_activation_bytes(run.shape, run.precision, run.batch, run.sequence,
                                        activations);
  };
  for (const char* text : {"keep", "recompute", "recompute:1,keep", "keep:1,recompute"}) {
    const auto activations = model::LayerActivations::parse(text);
    REQUIRE(activations.ok());
    CHECK(static_cast<double>(bytes(*activations)) == activation_bytes(run, *activations));
  }
  CHECK(bytes(Activations::recompute) < bytes(Activations::keep));
  CHECK(bytes(Activations::offload) == 0);
}

TEST_CASE("what is asked of a platform without ranks is refused") {
  Drawn drawn(119);
  SimulatedPlanRequest request = drawn_request(drawn);
  request.run.platform.cluster.reset();
  const auto plan = plan_by_simulation(request);
  REQUIRE(!plan.ok());
  CHECK(plan.error().message().find("no [cluster]") != std::string::npos);
}

}  // namespace
}  // namespace sluice::simulate
