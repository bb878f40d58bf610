#pragma once
// Which part of `count` elements belongs to which rank of a group: the first `count % part_count`
// parts are longer by one, and the parts lie in the order of the ranks. Nothing is padded.
//
// Thread contract: free functions, any thread.

#include <algorithm>
#include <cstdint>

namespace sluice::collective {

struct Shard {
  std::int64_t first = 0;  // element
  std::int64_t count = 0;  // elements
};

// Part `part` of `part_count`, 0-based.
constexpr Shard shard_of(std::int64_t count, std::int64_t part_count, std::int64_t part) {
  const std::int64_t shorter = count / part_count;
  const std::int64_t longer_count = count % part_count;
  return {part * shorter + std::min(part, longer_count), shorter + (part < longer_count ? 1 : 0)};
}

}  // namespace sluice::collective
