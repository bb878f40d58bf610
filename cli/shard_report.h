#pragma once
// `sluice simulate --shard`: a step of one rank among many (core/shard), and what it prints.
//
// Thread contract: free functions.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/settings/run_config.h"
#include "core/simulate/drive_rank.h"
#include "core/simulate/sharded_run.h"

namespace sluice::cli {

struct ShardArguments {
  std::string sharding;              // a scheme, three scopes, or auto
  std::string ranks;                 // "4x2": of the cluster's; empty: all
  std::string state = "memory";      // or "drives": where a rank's part of it lies; empty: either
  std::vector<std::string> without;  // names of overlaps that are off
  // Settings: with the state on drives any, else those of the batch, activations, and the cap.
  std::vector<std::string> overrides;
};

// All but a sharding. Errors (ErrorCode::config): a setting that a sharded step does not have, an
// unknown overlap, no cluster.
Result<simulate::ShardedRun> unsharded_run(const settings::RunConfig& config,
                                           const ShardArguments& arguments);
// Whether a sharded step that has its state in memory has this setting ("key=value"), too.
bool is_setting_of_any_step(std::string_view setting);
// Steps of such ranks with their state on drives. Where the settings do not say it, these are all
// that the platform has, and plain ones among them are updated for by the host.
simulate::DriveRank drive_rank(settings::RunConfig config, const ShardArguments& arguments,
                               const simulate::ShardedRun& run);
// A rank's: accelerator_memory, or else what the platform file says; 0: neither.
std::int64_t rank_memory_cap_bytes(const settings::RunConfig& config,
                                   const platform::Cluster& cluster);

// A run, and what its steps are where its state lies on drives.
struct ShardedRuns {
  simulate::ShardedRun run;
  simulate::DriveRank drives;
};
// Errors: those of unsharded_run() and of core/shard. auto is the triple of plan_by_formula() under
// that cap, and with the state on drives that of plan_by_simulation().
Result<ShardedRuns> sharded_run(const settings::RunConfig& config, const ShardArguments& arguments);

double tokens_a_second(const simulate::ShardedRun& run, const simulate::ShardedStep& step);
std::string collectives_text(const simulate::ShardedStep& step);
void put_collectives(const simulate::ShardedStep& step, nlohmann::ordered_json& report);
nlohmann::ordered_json rank_memory_json(const shard::RankMemory& memory);

Result<std::string> shard_report_text(const ShardedRuns& runs);
Result<std::string> shard_report_json(const ShardedRuns& runs);

}  // namespace sluice::cli
