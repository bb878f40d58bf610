// The groups of a rank, and nodes placed so that groups stay off the spine.

#include "core/shard/groups.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

namespace sluice::shard {
namespace {

constexpr Scope kMesh{2, 4};

TEST_CASE("groups of a rank are consecutive for parameters and strided for the rest") {
  const Triple triple{{2, 1}, {2, 2}, {2, 2}};
  const RankGroups groups = groups_of(5, triple, kMesh);
  CHECK(groups.parameters == RankList{4, 5});
  CHECK(groups.gradients == RankList{5, 7});
  CHECK(groups.state == RankList{5, 7});
  CHECK(groups.data == RankList{1, 3, 5, 7});
  const RankGroups all = groups_of(3, {{2, 4}, {2, 4}, {2, 4}}, kMesh);
  CHECK(all.parameters == RankList{0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(all.data == RankList{3});
}

TEST_CASE("on every legal triple each rank is in one group of each kind, as large as its shape") {
  for (const Scope& mesh : {kMesh, Scope{8, 8}}) {
    for (const Triple& triple : all_triples(mesh)) {
      INFO(triple_text(triple));
      std::set<RankList> of_parameters;
      for (std::int32_t rank = 0; rank < mesh.size(); ++rank) {
        const RankGroups groups = groups_of(rank, triple, mesh);
        of_parameters.insert(groups.parameters);
        const std::pair<const RankList*, GroupShape> kinds[] = {
            {&groups.parameters, parameter_group(triple)},
            {&groups.gradients, gradient_group(triple)},
            {&groups.state, state_group(triple)},
            {&groups.data, data_group(triple, mesh)}};
        for (const auto& [ranks, shape] : kinds) {
          CHECK(std::ranges::count(*ranks, rank) == 1);
          REQUIRE(static_cast<std::int32_t>(ranks->size()) == shape.scope.size());
          std::set<std::int32_t> nodes;
          for (const std::int32_t r : *ranks) nodes.insert(r / mesh.ranks);
          CHECK(static_cast<std::int32_t>(nodes.size()) == shape.scope.nodes);
          if (nodes.size() > 1)
            CHECK(*std::next(nodes.begin()) - *nodes.begin() == shape.node_stride);
        }
      }
      CHECK(static_cast<std::int32_t>(of_parameters.size()) ==
            mesh.size() / triple.parameters.size());
    }
  }
}

// Bytes across the spine of all groups of parameters and of state, each rank sending 1000 on.
std::int64_t crossing(const std::vector<std::int32_t>& leaf_of_node, const Triple& triple,
                      const Scope& mesh) {
  std::set<RankList> rings;
  for (std::int32_t rank = 0; rank < mesh.size(); ++rank) {
    const RankGroups groups = groups_of(rank, triple, mesh);
    for (const RankList& ring : {groups.parameters, groups.state, groups.data}) rings.insert(ring);
  }
  std::int64_t sum = 0;
  for (const RankList& ring : rings) sum += spine_bytes(ring, 1000, leaf_of_node, mesh);
  return sum;
}

std::vector<std::int32_t> placed(const std::vector<std::int32_t>& leaves, const Triple& triple) {
  std::vector<std::int32_t> leaf_of_node;
  std::set<std::int32_t> seen;
  for (const std::int32_t node : order_by_leaf(leaves, triple)) {
    seen.insert(node);
    leaf_of_node.push_back(leaves[static_cast<std::size_t>(node)]);
  }
  CHECK(seen.size() == leaves.size());
  return leaf_of_node;
}

TEST_CASE("nodes placed by leaf switch send less across the spine than as they were listed") {
  const Scope mesh{8, 8};
  const std::vector<std::int32_t> in_turn = {0, 1, 0, 1, 0, 1, 0, 1};
  const Triple amsp_30b{{8, 1}, {8, 1}, {8, 4}};
  const std::vector<std::int32_t> by_leaf = placed(in_turn, amsp_30b);
  CHECK(by_leaf == std::vector<std::int32_t>{0, 0, 0, 0, 1, 1, 1, 1});
  // As listed every hop between nodes crosses: of 16 rings of state 4, of 8 rings of all nodes 8.
  CHECK(crossing(in_turn, amsp_30b, mesh) == (16 * 4 + 8 * 8) * 1000);
  // Placed, only the rings through all nodes cross, once there and once back.
  CHECK(crossing(by_leaf, amsp_30b, mesh) == 8 * 2 * 1000);
}

TEST_CASE("of leaf switches with odd numbers of nodes as many groups as fit stay whole") {
  const Triple triple{{1, 1}, {1, 1}, {1, 4}};
  const std::vector<std::int32_t> leaves = {0, 0, 0, 1, 1, 1, 1, 1};
  CHECK(placed(leaves, triple) == std::vector<std::int32_t>{0, 0, 0, 1, 1, 1, 1, 1});
  const std::vector<std::int32_t> order = order_by_leaf(leaves, triple);
  // One group of four lies under the second switch; the other has its fifth node.
  CHECK(crossing(placed(leaves, triple), triple, {1, 8}) <= crossing(leaves, triple, {1, 8}));
  CHECK(order.size() == 8);
}

}  // namespace
}  // namespace sluice::shard
