#include "core/shard/message_memory.h"

#include "core/collective/communicator_options.h"

namespace sluice::shard {
namespace {

// All ranks are in the world, and in the groups of gradients and of commits (core/train/ranks.h).
constexpr std::int64_t kGroupsOfAll = 3;
// Ranks with parts of the same parameters have a group for what is gathered, one for what is
// scattered, and one for the sums of squares (core/train/shard_groups.h).
constexpr std::int64_t kGroupsOfParameters = 3;

}  // namespace

std::int64_t message_memory_bytes(const RankShare& share, std::int64_t rank_count) {
  if (rank_count <= 1) return 0;
  std::int64_t group_count = kGroupsOfAll;
  if (share.is_sharded()) {
    if (share.is_gathered()) group_count += kGroupsOfParameters;
    if (share.mesh.size() > share.share.parameter_parts) group_count += 1;  // the same part
    if (share.owners.size() > 1) group_count += 1;
  }
  return group_count * collective::CommunicatorOptions{}.message_bytes;
}

}  // namespace sluice::shard
