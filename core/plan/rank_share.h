#pragma once
// What of a run's model one rank of it has, as its settings ask for (shard_parameters and the
// like) and its launcher has placed the ranks.
//
// Thread contract: free functions.

#include "core/settings/run_config.h"
#include "core/shard/rank_step.h"
#include "core/shard/share.h"

namespace sluice::plan {

// Errors (ErrorCode::config): scopes that are none or not legal, a mesh that the ranks do not fill,
// sharding without ranks.
Result<shard::RankShare> plan_rank_share(const settings::RunConfig& config,
                                         const model::FlatLayout& layout);

// Errors (ErrorCode::config): settings that do not go with what is sharded.
Status check_sharded(const shard::RankShare& share, const settings::RunConfig& config);

// What shard_overlap asks for. Errors (ErrorCode::config): a word that is none.
Result<shard::Overlaps> shard_overlaps(const settings::RunConfig& config);

}  // namespace sluice::plan
