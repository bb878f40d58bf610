#pragma once
// The cost of a run's collectives on the platform's cluster: an operation that moves bytes between
// ranks is given a route over the cluster's links, and ends no sooner than they say under the
// emulated clock. The links are a rank's own view: what the other ranks of its node and of its leaf
// switch do at the same time is in how often a route crosses a link.
//
// A rank's time begins when that rank begins; the others may come later, and then the work takes
// longer than the cost.
//
// Thread contract: made before the clock; then const, and read by the schedule's thread.

#include <map>
#include <memory>
#include <span>
#include <tuple>
#include <vector>

#include "core/runtime/operation.h"
#include "core/shard/cluster_links.h"

namespace sluice::shard {

// A collective in a kind of group.
struct CollectiveKind {
  Collective collective = Collective::all_gather;
  GroupShape group;
};

// The cluster of a run that has so many of its ranks: some of one node, or all of some nodes, which
// lie under one leaf switch or fill several. Errors (ErrorCode::config): it has no such part.
Result<platform::Cluster> cut_to_ranks(const platform::Cluster& cluster, std::int32_t rank_count);

class CollectiveLinks {
 public:
  // Adds links to the platform behind its own, which stay as they are: to be called before a clock
  // or a sink is made of it. The platform has a cluster, of whose ranks all take part.
  static std::shared_ptr<const CollectiveLinks> add_to(platform::Platform& platform,
                                                       std::span<const CollectiveKind> kinds);

  // Sets the operation's route, and as its bytes what a rank sends to the next of a ring:
  // `size_bytes`, those of the whole tensor, times (p - 1) / p for all_gather and reduce_scatter of
  // p ranks, twice that for all_reduce, and once for broadcast. A group of one rank costs nothing.
  // The kind is one of those it was made for. A group does one collective at a time: whoever starts
  // the operation sees to that. The object outlives the operation.
  void charge(runtime::Operation& operation, const CollectiveKind& kind,
              std::int64_t size_bytes) const;

  const platform::Scope& mesh() const { return mesh_; }

 private:
  explicit CollectiveLinks(const platform::Scope& mesh) : mesh_(mesh) {}
  using Key = std::tuple<Collective, std::int32_t, std::int32_t, std::int32_t>;
  static Key key_of(const CollectiveKind& kind) {
    const platform::Scope& scope = kind.group.scope;
    return {kind.collective, scope.ranks, scope.nodes, kind.group.node_stride};
  }

  platform::Scope mesh_;
  std::map<Key, std::vector<platform::LinkId>> routes_;
};

}  // namespace sluice::shard
