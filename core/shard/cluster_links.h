#pragma once
// The links that a rank's collectives cross, as links of a platform: those of the rank, of its node
// and of its leaf switch.
//
// Thread contract: plain data and free functions.

#include <string>
#include <vector>

#include "core/platform/platform.h"
#include "core/shard/cost.h"

namespace sluice::shard {

// The most that a platform file may say: bounds nothing.
inline constexpr double kUnboundedBandwidth = 1e18;

// Behind the platform's own; those that something crosses.
struct ClusterLinks {
  platform::LinkId within{-1};
  platform::LinkId between{-1};
  platform::LinkId spine{-1};
};
// The platform has a cluster.
ClusterLinks add_cluster_links(platform::Platform& platform);

// Behind all others; both ways alike.
platform::LinkId add_link(platform::Platform& platform, std::string name, double bytes_per_s,
                          TimeNs latency_ns);

// `own`, and then each link as often as the collective crosses it (CollectiveCost).
std::vector<platform::LinkId> route_over(const ClusterLinks& links, platform::LinkId own,
                                         const CollectiveCost& cost);

}  // namespace sluice::shard
