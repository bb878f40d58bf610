#pragma once
// Which ranks do a collective together, and where they are: groups of a rank by AMSP's rules, nodes
// numbered so that a group lies under one leaf switch, and the bytes that cross the spine.
//
// Ranks are numbered through: those of node 0 first. Thread contract: plain data and free
// functions.

#include <cstdint>
#include <span>
#include <vector>

#include "core/shard/triple.h"

namespace sluice::shard {

// Ranks of one group, from the lowest on: a ring goes through them in this order, and around.
using RankList = std::vector<std::int32_t>;

struct RankGroups {
  RankList parameters;  // each has a part of the parameters: consecutive ranks
  // Those that hold the same part of the parameters,
  RankList gradients;  // within the scope of the gradients,
  RankList state;      // within that of the state: each owns a part of the state,
  RankList data;       // among all ranks
};
// `rank` is one of the mesh, and the triple is legal there.
RankGroups groups_of(std::int32_t rank, const Triple& triple, const Scope& mesh);

// A kind of group as the links see it: its scope, and how many nodes lie from one of its nodes to
// the next.
struct GroupShape {
  Scope scope;
  std::int32_t node_stride = 1;
  friend bool operator==(const GroupShape&, const GroupShape&) = default;
};
GroupShape parameter_group(const Triple& triple);
GroupShape gradient_group(const Triple& triple);
GroupShape state_group(const Triple& triple);
GroupShape data_group(const Triple& triple, const Scope& mesh);

}  // namespace sluice::shard
