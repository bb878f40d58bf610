#pragma once
// Which part of `count` elements belongs to which rank of a group. Parts are whole units, of which
// the last has what is left: of n units the first `n % part_count` parts have one more than the
// others. The parts lie in the order of the ranks. Nothing is padded.
//
// Thread contract: free functions, any thread.

#include <algorithm>
#include <cstdint>

namespace sluice::collective {

struct Shard {
  std::int64_t first = 0;  // element
  std::int64_t count = 0;  // elements
};

// Part `part` of `part_count`, 0-based, in units of `unit` elements.
constexpr Shard shard_of(std::int64_t count, std::int64_t part_count, std::int64_t part,
                         std::int64_t unit = 1) {
  const std::int64_t unit_count = (count + unit - 1) / unit;
  const std::int64_t shorter = unit_count / part_count;
  const std::int64_t longer_count = unit_count % part_count;
  const std::int64_t first = (part * shorter + std::min(part, longer_count)) * unit;
  const std::int64_t end = first + (shorter + (part < longer_count ? 1 : 0)) * unit;
  return {std::min(first, count), std::min(end, count) - std::min(first, count)};
}

}  // namespace sluice::collective
