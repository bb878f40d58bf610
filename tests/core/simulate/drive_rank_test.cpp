// Steps over many ranks with their state on drives: one rank's is the step of one rank, bytes are
// those of its share, no step is shorter than its bound, and a plan is the best of all candidates.

#include "core/simulate/drive_rank.h"

#include <algorithm>
#include <limits>

#include "core/plan/run_plan.h"
#include "core/simulate/memory_rank.h"
#include "core/simulate/rank_part.h"
#include "core/simulate/simulated_plan.h"
#include "tests/core/simulate/drawn_run.h"
#include "tests/core/simulate/sample_plan.h"
#include "tests/sanitizer.h"

using namespace sluice;
using namespace sluice::simulate;
using model::Activations;
using platform::Scope;
using shard::Triple;

namespace {

constexpr int kProblems = kIsSanitized ? 20 : 200;

template <typename T>
T value_or_fail(Result<T> result) {
  INFO((result.ok() ? std::string() : result.error().message()));
  REQUIRE(result.ok());
  return std::move(*result);
}

model::LayerActivations mix(const char* text) {
  return value_or_fail(model::LayerActivations::parse(text));
}

ShardedRun run_of(const settings::RunConfig& config, const Scope& mesh) {
  ShardedRun run;
  run.shape = value_or_fail(model::load_model_shape(config.files.model));
  run.platform = value_or_fail(platform::load_platform(config.files.platform));
  run.platform.cluster->mesh = mesh;
  run.platform.cluster->nodes_a_leaf = mesh.nodes;
  run.batch = config.batch.batch;
  run.sequence = config.batch.sequence;
  run.micro_batches = config.batch.grad_accum_steps;
  run.activations = config.arithmetic.activations;
  run.state_tier = StateTier::drives;
  return run;
}

}  // namespace

TEST_CASE("a step over one rank is that of one rank, to the nanosecond") {
  const std::vector<std::vector<std::string>> ways = {
      {"method=csd"},
      {"method=host", "pipeline=serial", "grad_accum_steps=2"},
      {"method=csd", "pipeline=handover", "density=0.01"},
      {"method=csd", "activations=offload:1-8,recompute:9-16,keep", "overlap=exact"},
      {"method=host", "activations=offload_inputs", "gradient_tier=memory"}};
  for (const std::vector<std::string>& way : ways) {
    std::vector<std::string> settings = {"devices=4", "batch=2"};
    settings.insert(settings.end(), way.begin(), way.end());
    const settings::RunConfig config = sample_config("gpt2-0.34b", "smartssd-2x4", settings);
    const SimulatedStep alone = simulated(value_or_fail(plan::plan_run(config)));
    const ShardedRun run = run_of(config, {1, 1});
    const ShardedStep step = value_or_fail(DriveRank(config).step(run));
    CHECK(step.seconds == alone.total_seconds);
    CHECK(step.exposed_seconds() == Approx(0).margin(1e-9));
    double waited = 0;
    for (const double seconds : alone.activation_wait_seconds) waited += seconds;
    CHECK(step.activation_wait_seconds == waited);
  }
}

TEST_CASE("a rank moves its share of the state, and what the table of the sharding says") {
  const settings::RunConfig config = sample_config(
      "gpt2-0.34b", "smartssd-2x4", {"devices=4", "method=csd", "subgroup_elements=10000000"});
  const Scope all{2, 4};
  for (const Triple& triple :
       {Triple{{1, 1}, all, all}, Triple{all, all, all}, Triple{{2, 1}, all, all},
        Triple{{2, 1}, {2, 2}, {2, 2}}, Triple{}}) {
    INFO(shard::triple_text(triple));
    ShardedRun run = run_of(config, all);
    run.triple = triple;
    const DriveRank drives(config);
    const plan::RunPlan plan = value_or_fail(drives.plan(run));
    const ShardedStep step = value_or_fail(drives.step(run));
    const std::int64_t owned = plan.share.state.parameter_count;
    // Ranks have whole subgroups, and the first has no less than another.
    const std::int64_t even = divide_up(plan.layout.parameter_count, triple.state.size());
    CHECK(owned >= even * 99 / 100);
    CHECK(owned <= even + plan.geometry.subgroup_elements);
    CHECK(step.of(stages::Stage::state_read).size_bytes == 12 * owned);
    CHECK(step.of(stages::Stage::state_write).size_bytes == 12 * owned);
    CHECK(step.of(stages::Stage::gradient_down).size_bytes == 4 * owned);
    const std::int64_t layers = plan.layout.layer_count();
    const bool is_gathered = triple.parameters.size() > 1;
    // Parameters before forward and backward, two layers once; the blocks' sums once.
    CHECK(step.of(stages::Stage::all_gather).count == (is_gathered ? 3 * layers - 2 : 0));
    CHECK(step.of(stages::Stage::reduce_scatter).count == (is_gathered ? layers : 0));
    const std::int64_t owners = triple.state.size() / triple.parameters.size();
    CHECK(step.of(stages::Stage::broadcast).count == (owners > 1 ? owners : 0));
    CHECK(step.compute_seconds + step.update_seconds + step.exposed_seconds() ==
          Approx(step.seconds));
  }
}

TEST_CASE("what goes beside computing makes a step no longer, and each sharding has its own step") {
  const settings::RunConfig config =
      sample_config("gpt2-0.34b", "smartssd-2x4", {"devices=4", "method=csd"});
  const Scope all{2, 4};
  for (const Triple& triple : {Triple{{1, 1}, all, all}, Triple{all, all, all}}) {
    ShardedRun run = run_of(config, all);
    run.triple = triple;
    const DriveRank drives(config);
    const double with_all = value_or_fail(drives.step(run)).seconds;
    run.overlaps = shard::Overlaps::none();
    CHECK(value_or_fail(drives.step(run)).seconds > with_all);
  }
}

TEST_CASE("activations that leave take memory off a rank, and say what they wait for") {
  const settings::RunConfig config =
      sample_config("gpt2-0.34b", "smartssd-2x4", {"devices=4", "batch=8", "grad_accum_steps=2"});
  ShardedRun run = run_of(config, {2, 4});
  run.triple = {{2, 4}, {2, 4}, {2, 4}};
  const DriveRank drives(config);
  const auto bytes = [&](const char* activations) {
    run.activations = mix(activations);
    return value_or_fail(drives.choice(run)).memory.activation_bytes;
  };
  CHECK(bytes("recompute") < bytes("keep"));
  CHECK(bytes("offload:1-24,keep") < bytes("keep") / 2);
  CHECK(bytes("offload_inputs:1-24,recompute") < bytes("recompute"));
  run.activations = mix("offload:1-24,keep");
  const ShardedStep step = value_or_fail(drives.step(run));
  CHECK(step.of(stages::Stage::activation_write).size_bytes > 0);
  CHECK(step.activation_wait_seconds > 0);
  CHECK(step.activation_wait_seconds <= step.update_seconds + step.exposed_seconds() + 1e-9);
}

// ---- the planner against all candidates ----

namespace {

platform::Platform drawn_platform(Drawn& drawn) {
  constexpr Scope kMeshes[] = {{2, 1}, {2, 2}, {1, 2}, {3, 1}};
  const Scope mesh = kMeshes[drawn.between(0, 3)];
  std::string links;
  if (mesh.ranks > 1) {
    links += fmt::format("within = {{ bandwidth = \"{} GB/s\", latency = \"5 us\" }}\n",
                         drawn.between(1, 40));
  }
  if (mesh.nodes > 1) {
    links += fmt::format("between = {{ bandwidth = \"{} GB/s\", latency = \"10 us\" }}\n",
                         drawn.between(1, 20));
  }
  // One after the other: in what order a call takes its arguments differs between compilers.
  const std::int64_t engine = drawn.between(50, 900);
  const std::int64_t drive_write = drawn.between(300, 4000);
  const std::int64_t drive_read = drawn.between(300, 6000);
  const std::int64_t link_read = drawn.between(1, 8);
  const std::int64_t step_us = drawn.between(0, 500);
  const std::int64_t rank_adamw = drawn.between(50, 3000);
  const std::int64_t matmul = drawn.between(1, 60);
  const std::int64_t checksum = drawn.between(1, 12);
  const std::int64_t stage = drawn.between(100, 2000);
  const std::int64_t host_adamw = drawn.between(100, 2000);
  const std::string text = fmt::format(
      "name = \"drawn\"\n[host]\nadamw = \"{} Melem/s\"\nstage = \"{} Melem/s\"\n"
      "checksum = \"{} GB/s\"\n[compute]\nmatmul = \"{} TFLOP/s\"\n"
      "[cluster]\nranks = {}\nnodes = {}\nadamw = \"{} Melem/s\"\nstep = \"{} us\"\n{}"
      "[[link]]\nname = \"host\"\nread = \"{} GB/s\"\nwrite = \"4 GB/s\"\nduplex = \"full\"\n"
      "[[device]]\nname = \"csd\"\ncount = 2\nvia = [\"host\"]\nmemory = \"4 GiB\"\n"
      "capacity = \"1 TB\"\n"
      "drive = {{ read = \"{} MB/s\", write = \"{} MB/s\", duplex = \"half\" }}\n"
      "internal = {{ read = \"2 GB/s\", write = \"2 GB/s\", duplex = \"half\" }}\n"
      "engine = {{ adamw = \"{} Melem/s\", launch = \"20 us\" }}\n",
      host_adamw, stage, checksum, matmul, mesh.ranks, mesh.nodes, rank_adamw, step_us, links,
      link_read, drive_read, drive_write, engine);
  return value_or_fail(platform::parse_platform(text, "drawn.toml"));
}

settings::RunConfig drawn_config(Drawn& drawn) {
  constexpr const char* kPipelines[] = {"serial", "handover", "nbuffer"};
  const std::vector<std::string> settings = {
      "devices=2",
      std::string("method=") + (drawn.between(0, 1) == 0 ? "host" : "csd"),
      std::string("pipeline=") + kPipelines[drawn.between(0, 2)],
      std::string("overlap=") + (drawn.between(0, 3) == 0 ? "exact" : "off"),
      fmt::format("subgroup_elements={}", 30'000 * drawn.between(1, 8)),
      fmt::format("buffers={}", drawn.between(1, 4)),
      "bounce_memory=8MiB"};
  return sample_config("tiny", "smartssd-2x4", settings);
}

SimulatedPlanRequest drawn_request(Drawn& drawn) {
  SimulatedPlanRequest request;
  request.run = drawn_run(drawn, [&] { return drawn_platform(drawn); }, 2);
  request.activations = {Activations::keep, Activations::recompute, mix("offload:1,keep"),
                         mix("offload_inputs:1,recompute")};
  request.state_tiers = {StateTier::memory, StateTier::drives};
  if (drawn.between(0, 2) == 0) request.state_tiers = {StateTier::drives};
  return request;
}

struct Best {
  double seconds = std::numeric_limits<double>::infinity();
  std::int64_t smallest_bytes = std::numeric_limits<std::int64_t>::max();
  std::int64_t largest_bytes = 0;
};

// All triples, also those that differ in the scope of the gradients alone.
Best search_all(const SimulatedPlanRequest& request) {
  Best best;
  for (const Triple& triple : shard::all_triples(request.run.platform.cluster->mesh)) {
    for (const auto& activations : request.activations) {
      for (const StateTier tier : request.state_tiers) {
        if (tier == StateTier::memory && leaves_memory(request.run.shape, activations)) continue;
        ShardedRun run = request.run;
        run.triple = triple;
        run.activations = activations;
        run.state_tier = tier;
        DriveChoice choice;
        if (tier == StateTier::drives) choice = value_or_fail(request.drives->choice(run));
        const std::int64_t bytes =
            tier == StateTier::drives ? choice.memory.total_bytes() : run_memory(run).total_bytes();
        best.smallest_bytes = std::min(best.smallest_bytes, bytes);
        best.largest_bytes = std::max(best.largest_bytes, bytes);
        if (request.memory_cap_bytes > 0 && bytes > request.memory_cap_bytes) continue;
        const double seconds = value_or_fail(step_of(request.drives, run)).seconds;
        if (choice.bound_seconds > seconds) INFO(shard::triple_text(triple));
        CHECK(choice.bound_seconds <= seconds * (1 + 1e-9));
        best.seconds = std::min(best.seconds, seconds);
      }
    }
  }
  return best;
}

}  // namespace

TEST_CASE("with drives and activations that leave the plan is the best of all, on 200 problems") {
  Drawn drawn(123);
  int infeasible_count = 0;
  int capped_count = 0;
  int spared_count = 0;
  int on_drives_count = 0;
  int leaving_count = 0;
  for (int i = 0; i < kProblems; ++i) {
    INFO(i);
    SimulatedPlanRequest request = drawn_request(drawn);
    const DriveRank drives(drawn_config(drawn));
    request.drives = &drives;
    const Best uncapped = search_all(request);
    if (drawn.between(0, 4) > 0) {
      request.memory_cap_bytes =
          drawn.between(uncapped.smallest_bytes * 9 / 10, uncapped.largest_bytes);
    }
    const Best best = request.memory_cap_bytes > 0 ? search_all(request) : uncapped;
    const auto plan = plan_by_simulation(request);
    REQUIRE(plan.ok() == (best.seconds < std::numeric_limits<double>::infinity()));
    if (!plan.ok()) {
      ++infeasible_count;
      CHECK_THAT(
          plan.error().message(),
          Catch::Contains(fmt::format("smallest cap that works is {} bytes", best.smallest_bytes)));
      continue;
    }
    CHECK(plan->is_exhaustive);
    CHECK(plan->best.step->seconds == best.seconds);
    capped_count += plan->fitting_count < plan->candidate_count ? 1 : 0;
    spared_count += plan->simulated_count < plan->fitting_count ? 1 : 0;
    on_drives_count += plan->best.state_tier == StateTier::drives ? 1 : 0;
    leaving_count += leaves_memory(request.run.shape, plan->best.activations) ? 1 : 0;
  }
  if (kIsSanitized) return;  // so few need not be of every kind
  CHECK(infeasible_count > 0);
  CHECK(capped_count > kProblems / 4);
  CHECK(spared_count > kProblems / 2);
  CHECK(on_drives_count > kProblems / 5);
  CHECK(leaving_count > 0);
}

TEST_CASE("what cannot be on a rank's drives is refused, or passed over") {
  Drawn drawn(5);
  SimulatedPlanRequest request = drawn_request(drawn);
  request.state_tiers = {StateTier::drives};
  settings::RunConfig config = drawn_config(drawn);
  config.offload.parameters = settings::ParameterTier::storage;
  const DriveRank refusing(config);
  request.drives = &refusing;
  // Ranks that each have the whole model have it there; the others are passed over.
  const SimulatedPlan plan = value_or_fail(plan_by_simulation(request));
  CHECK(plan.best.triple == Triple{});
  config.offload.parameters = settings::ParameterTier::memory;
  config.offload.gradient_work = offload::GradientWork::accelerator;
  const DriveRank none(config);
  request.drives = &none;
  const auto refused = plan_by_simulation(request);
  REQUIRE_FALSE(refused.ok());
  CHECK_THAT(refused.error().message(), Catch::Contains("gradient_work=accelerator"));
}
