#pragma once
// Many ranks as data: nodes under leaf switches, the links between them, and how fast a collective
// is in a group of them. Table [cluster] and rows [[collective]] of a platform file
// (docs/platform_format.md).
//
// Thread contract: plain data and free functions.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"

namespace sluice::platform {

// The collectives of a group of ranks. `broadcast` is from one of them to the others.
enum class Collective : std::uint8_t { all_gather, reduce_scatter, all_reduce, broadcast };
inline constexpr std::array<Collective, 4> kCollectives = {
    Collective::all_gather, Collective::reduce_scatter, Collective::all_reduce,
    Collective::broadcast};
std::string collective_name(Collective collective);

// Ranks in a node, times nodes: how many ranks of each node a group has, and of how many nodes.
// Text "4x2".
struct Scope {
  std::int32_t ranks = 1;
  std::int32_t nodes = 1;

  std::int32_t size() const { return ranks * nodes; }
  friend bool operator==(const Scope&, const Scope&) = default;
};
std::string scope_text(const Scope& scope);
// Errors (ErrorCode::config): not two whole numbers from 1 to kRanksMax with an x between them.
Result<Scope> parse_scope(std::string_view text);
inline constexpr std::int32_t kRanksMax = 65536;  // in a node, and of nodes

struct ClusterLink {
  double bytes_per_s = 0;  // each way
  TimeNs latency_ns = 0;   // of a hop from one rank to the next
};

// Bytes of the whole tensor over the time that the collective takes, at tensors of this size.
struct CollectivePoint {
  std::int64_t size_bytes;
  double bytes_per_s;
};

// Measured: the time is linear over the size between points, the bandwidth flat outside.
struct CollectiveCurve {
  Collective collective = Collective::all_gather;
  Scope group;
  std::vector<CollectivePoint> points;  // at least one; sizes rise
};

struct Cluster {
  Scope mesh;                        // ranks of each node, and nodes
  std::int32_t nodes_a_leaf = 1;     // under one leaf switch
  ClusterLink within;                // of one rank, to those of its node
  ClusterLink between;               // of one node, to others
  ClusterLink spine;                 // of one leaf switch, to others
  std::int64_t memory_bytes = 0;     // of what a rank computes with; 0 = not stated
  double update_elements_per_s = 0;  // of the optimizer in a rank's memory; 0 = not stated
  TimeNs step_ns = 0;                // what a step costs besides
  std::vector<CollectiveCurve> collectives;

  // Null: nobody measured that collective in such a group.
  const CollectiveCurve* find(Collective collective, const Scope& group) const;
};

}  // namespace sluice::platform
