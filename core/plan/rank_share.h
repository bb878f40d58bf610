#pragma once
// What of a run's model one rank of it has, as its settings ask for (shard_parameters and the
// like) and its launcher has placed the ranks.
//
// Thread contract: free functions.

#include "core/model/model_shape.h"
#include "core/platform/platform.h"
#include "core/settings/run_config.h"
#include "core/shard/overlaps.h"
#include "core/shard/share.h"

namespace sluice::plan {

// The scopes are three, or one word for all: a scheme such as zero1, or auto, the sharding with the
// shortest simulated step (core/shard/simulated_plan.h) under host_memory, or else the cluster's
// memory. Errors (ErrorCode::config): scopes that are none or not legal, a mesh that the ranks do
// not fill, sharding without ranks.
Result<shard::RankShare> plan_rank_share(const settings::RunConfig& config,
                                         const model::ModelShape& shape,
                                         const model::FlatLayout& layout,
                                         const platform::Platform& platform);

// Errors (ErrorCode::config): settings that do not go with what is sharded.
Status check_sharded(const shard::RankShare& share, const settings::RunConfig& config);

// What shard_overlap asks for. Errors (ErrorCode::config): a word that is none.
Result<shard::Overlaps> shard_overlaps(const settings::RunConfig& config);

}  // namespace sluice::plan
