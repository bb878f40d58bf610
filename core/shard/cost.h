#pragma once
// How long collectives take, by formula: AMSP's, with the bandwidth of a group from the platform
// file, or from its links where nobody measured it. What a rank keeps in memory.
//
// Thread contract: plain data and free functions.

#include <array>
#include <cstdint>

#include "core/platform/platform.h"
#include "core/shard/collectives.h"

namespace sluice::shard {

// One collective as the links see it. Measured: it takes size_bytes / bandwidth, whatever the links
// are. Else a ring: `edge_bytes` cross each link as many times as stands here, since groups of the
// other ranks of the node, or of the leaf switch, do the same at the same time; and before that as
// many hops pass as the collective has rounds, each with the latency of the slowest link.
struct CollectiveCost {
  std::int64_t edge_bytes = 0;
  std::int32_t within_times = 0;
  std::int32_t between_times = 0;
  std::int32_t spine_times = 0;
  TimeNs latency_ns = 0;
  double seconds = 0;  // alone on its links
  bool is_measured = false;
};
CollectiveCost collective_cost(const platform::Cluster& cluster, Collective collective,
                               std::int64_t size_bytes, const GroupShape& group);

// The time is linear between two points, so it rises where theirs does; outside, the bandwidth is
// that of the nearest point.
double measured_seconds(const platform::CollectiveCurve& curve, std::int64_t size_bytes);

// Seconds of a step's collectives one after the other, by purpose. AMSP's T_p is gather + scatter,
// T_g accumulate, T_os0 reduce, T_os1 share.
struct CommunicationTime {
  std::array<double, kPurposeCount> seconds{};
  double of(Purpose purpose) const { return seconds[static_cast<std::size_t>(purpose)]; }
  double total() const;
};
CommunicationTime communication_time(const platform::Cluster& cluster, const StepShape& step,
                                     const Triple& triple);

// Bytes of one rank that has its state in memory: 2 / s_p + 2 / s_g + 12 / s_os a parameter (4, 4
// and 8 in fp32), what layers keep for backward, and buffers: with s_p above one two gathered
// modules and one module's gradients, and one bucket.
struct RankMemory {
  std::int64_t parameter_bytes = 0;
  std::int64_t gradient_bytes = 0;
  std::int64_t state_bytes = 0;
  std::int64_t activation_bytes = 0;
  std::int64_t buffer_bytes = 0;
  std::int64_t drive_bytes = 0;  // on the rank's drives instead

  std::int64_t total_bytes() const {
    return parameter_bytes + gradient_bytes + state_bytes + activation_bytes + buffer_bytes;
  }
};
RankMemory rank_memory(const StepShape& step, const Triple& triple, std::int64_t activation_bytes);

// After the last gradients are there: what a step costs besides, and the update of what a rank
// owns, in its memory.
TimeNs update_ns(const platform::Cluster& cluster, const StepShape& step, const Triple& triple);

}  // namespace sluice::shard
