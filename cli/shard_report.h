#pragma once
// `sluice simulate --shard`: a step of one rank among many (core/shard), and what it prints.
//
// Thread contract: free functions.

#include <string>
#include <vector>

#include "core/settings/run_config.h"
#include "core/shard/simulated_step.h"

namespace sluice::cli {

struct ShardArguments {
  std::string sharding;                // a scheme, three scopes, or auto
  std::vector<std::string> without;    // names of overlaps that are off
  std::vector<std::string> overrides;  // settings: those of the batch, and activations
};

// Errors (ErrorCode::config): a setting that a sharded step does not have, an unknown overlap, and
// those of core/shard. auto is the triple of plan_by_formula() under the memory of the cluster's
// ranks, without what activations take.
Result<shard::ShardedRun> sharded_run(const settings::RunConfig& config,
                                      const ShardArguments& arguments);

Result<std::string> shard_report_text(const shard::ShardedRun& run);
Result<std::string> shard_report_json(const shard::ShardedRun& run);

}  // namespace sluice::cli
