#pragma once
// Host memory that a rank's groups take for messages of others (docs/collective.md).
//
// Thread contract: free function.

#include <cstdint>

#include "core/shard/share.h"

namespace sluice::shard {

// An upper bound for one rank of a run that has so many: a group that sums nothing leaves its part
// untouched. The only rank takes none.
std::int64_t message_memory_bytes(const RankShare& share, std::int64_t rank_count);

}  // namespace sluice::shard
