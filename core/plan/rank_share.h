#pragma once
// The part of a run's model that one rank of it has, as its settings ask for (shard_parameters and
// the like) and its launcher has placed the ranks.
//
// Thread contract: free functions.

#include "core/model/flat_layout.h"
#include "core/platform/platform.h"
#include "core/settings/run_config.h"
#include "core/shard/share.h"

namespace sluice::shard {
class Overlaps;
}

namespace sluice::plan {

// Whether several ranks are to choose how they shard (shard_state=auto). The choice is made before
// a plan is asked for (core/simulate/sharding_choice.h). A run of one rank shares nothing.
bool is_sharding_open(const settings::RunConfig& config);

// The mesh of all ranks: that of the settings, or as the launcher has placed them. Errors
// (ErrorCode::config): the ranks do not fill it.
Result<platform::Scope> mesh_of(const settings::RunConfig& config);

// The scopes are three, or one word for all: a scheme such as zero1. Errors (ErrorCode::config):
// scopes that are none, not legal or not chosen yet, a mesh that the ranks do not fill, sharding
// without ranks.
Result<shard::RankShare> plan_rank_share(const settings::RunConfig& config,
                                         const model::FlatLayout& layout);

// Errors (ErrorCode::config): settings that do not go with what is sharded.
Status check_sharded(const shard::RankShare& share, const settings::RunConfig& config);

// The overlaps that shard_overlap asks for (core/shard/overlaps.h). Errors (ErrorCode::config): a
// word that is none.
Result<shard::Overlaps> shard_overlaps(const settings::RunConfig& config);

}  // namespace sluice::plan
