#pragma once
// The digest of the state of a run of several ranks: that of one rank which had all of it.
//
// Thread contract: the schedule's thread, after the last commit; collective over all ranks.

#include <string>

#include "core/shard/share.h"
#include "storage/state/state_store.h"

namespace sluice::train {

class Ranks;

// Every rank's own part is checked against its checksums first. Errors: ErrorCode::corrupt for a
// part that is damaged, ErrorCode::internal where ranks with the same part differ.
Result<std::string> digest_of_ranks(Ranks& ranks, const shard::RankShare& share,
                                    const model::FlatLayout& model, state::StateStore& store);

}  // namespace sluice::train
