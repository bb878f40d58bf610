#pragma once
// The bytes that drives take ahead of their rate after idling: the fast cache of an SSD, the bucket
// of a throttle; and those that processors take behind theirs until they are awake. Each direction
// of a link with a Burst has a credit of bytes; a flow takes what is there and pays for those bytes
// by the burst's rate. The credit comes back at the link's own rate while no flow is under way in
// that direction.
//
// A flow's whole credit is settled when it starts, so rates change only when flows come and go, as
// without bursts. What that simplifies: the bytes that a flow saves load no other link of its
// route.
//
// Thread contract: one thread.

#include <array>
#include <cstdint>
#include <span>

#include "base/id_vector.h"
#include "core/platform/platform.h"

namespace sluice::platform {

class BurstCredit {
 public:
  explicit BurstCredit(std::span<const Link> links);

  // Bytes at the links' own rates that take as long as `size_bytes` do now. Where several links on
  // the route have a credit, the link with the least decides.
  double begin(std::span<const LinkId> route, Direction direction, std::int64_t size_bytes,
               TimeNs now_ns);
  void end(std::span<const LinkId> route, Direction direction, TimeNs now_ns);

 private:
  struct Bucket {
    double most_bytes = 0;  // 0: this direction has no burst
    double bytes_per_s = 0;
    double burst_bytes_per_s = 0;
    double left_bytes = 0;
    std::int32_t flow_count = 0;
    TimeNs idle_since_ns = 0;
  };

  Bucket& bucket_of(LinkId link, Direction direction) {
    return buckets_[link][static_cast<std::size_t>(direction)];
  }

  IdVector<LinkId, std::array<Bucket, 2>> buckets_;  // by direction; empty: no link has a burst
};

}  // namespace sluice::platform
