// shard_state=auto is the sharding whose step, as the run takes it, is the shortest of all legal
// ones that fit.

#include "core/simulate/sharding_choice.h"

#include <limits>

#include "core/plan/run_plan.h"
#include "core/simulate/drive_rank.h"
#include "tests/core/simulate/sample_plan.h"

namespace sluice::simulate {
namespace {

settings::RunConfig asked(const char* platform, std::vector<std::string> settings = {}) {
  for (const char* scope : {"shard_parameters", "shard_gradients", "shard_state"}) {
    settings.push_back(std::string(scope) + "=auto");
  }
  settings.insert(settings.end(), {"devices=2", "mesh=2x4"});
  settings::RunConfig config = sample_config("gpt2-124m", platform, settings);
  config.batch.rank_count = 8;
  return config;
}

shard::Triple triple_of(const settings::ShardConfig& shards) {
  return {platform::parse_scope(shards.parameters).value(),
          platform::parse_scope(shards.gradients).value(),
          platform::parse_scope(shards.state).value()};
}

// The run with these scopes.
ShardedRun run_of(const settings::RunConfig& config, const shard::Triple& triple) {
  ShardedRun run;
  run.shape = model::load_model_shape(config.files.model).value();
  run.platform = platform::load_platform(config.files.platform).value();
  run.batch = config.batch.batch;
  run.sequence = config.batch.sequence;
  run.activations = config.arithmetic.activations;
  run.state_tier = StateTier::drives;
  run.triple = triple;
  return run;
}

TEST_CASE("auto is the sharding with the shortest step of the run, on every rank") {
  for (const char* method : {"method=csd", "method=host"}) {
    INFO(method);
    settings::RunConfig config = asked("smartssd-2x4", {method});
    const auto chosen = with_sharding(config);
    INFO((chosen.ok() ? "" : chosen.error().message()));
    REQUIRE(chosen.ok());
    const shard::Triple triple = triple_of(chosen->shards);
    const DriveRank drives(config);
    double best = std::numeric_limits<double>::infinity();
    for (const shard::Triple& other : shard::all_triples({2, 4})) {
      best = std::min(best, drives.step(run_of(config, other)).value().seconds);
    }
    CHECK(drives.step(run_of(config, triple)).value().seconds == best);
    config.shards.rank = 5;
    CHECK(triple_of(with_sharding(config)->shards) == triple);
    // A plan of the run has the scopes, and so has its record.
    CHECK(triple_of(plan::plan_run(*chosen).value().config.shards) == triple);
  }
}

TEST_CASE("under a cap auto is a sharding that fits, and the smallest cap is said") {
  settings::RunConfig config = asked("smartssd-2x4");
  config.resources.accelerator_memory_bytes = 1;
  const auto refused = with_sharding(config);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code() == ErrorCode::memory);
  const std::string& text = refused.error().message();
  const std::size_t at = text.find("the smallest cap that works is ");
  REQUIRE(at != std::string::npos);
  config.resources.accelerator_memory_bytes = std::stoll(text.substr(at + 31));
  CHECK(with_sharding(config).ok());
  config.resources.accelerator_memory_bytes -= 1;
  CHECK_FALSE(with_sharding(config).ok());
}

TEST_CASE("scopes that are said stay, and without a cluster there is no choice") {
  settings::RunConfig config = asked("smartssd-2x4");
  config.shards.state = "2x4";
  CHECK(with_sharding(config)->shards.parameters == "auto");
  const auto refused = with_sharding(asked("laptop"));
  REQUIRE_FALSE(refused.ok());
  CHECK_THAT(refused.error().message(), Catch::Contains("has no [cluster]; mpirun -n 8 sluice"));
  config = asked("laptop");
  config.batch.rank_count = 1;
  CHECK(with_sharding(config).ok());
}

}  // namespace
}  // namespace sluice::simulate
