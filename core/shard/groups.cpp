#include "core/shard/groups.h"

#include <algorithm>
#include <map>

#include "base/check.h"

namespace sluice::shard {
namespace {

// Ranks of `rank`'s block of `block_size`, every `stride`-th of them.
RankList strided(std::int32_t rank, std::int32_t block_size, std::int32_t stride) {
  RankList ranks;
  const std::int32_t block = rank / block_size * block_size;
  for (std::int32_t r = block + rank % stride; r < block + block_size; r += stride) {
    ranks.push_back(r);
  }
  return ranks;
}

// Ranks that hold the same part of the parameters, within a scope.
GroupShape alike(const Scope& parameters, const Scope& within) {
  return {{within.ranks / parameters.ranks, within.nodes / parameters.nodes}, parameters.nodes};
}

// Consecutive nodes of the mesh, and the leaf switch of the first.
struct Block {
  std::vector<std::int32_t> nodes;
  std::int32_t leaf;
};

// Blocks of `count` of these. What one leaf switch has too few of is mixed, and comes last.
std::vector<Block> joined(const std::vector<Block>& blocks, std::size_t count) {
  std::map<std::int32_t, std::vector<const Block*>> by_leaf;
  for (const Block& block : blocks) by_leaf[block.leaf].push_back(&block);
  std::vector<const Block*> whole;
  std::vector<const Block*> rest;
  for (const auto& [leaf, of_leaf] : by_leaf) {
    const auto kept = static_cast<std::ptrdiff_t>(of_leaf.size() / count * count);
    whole.insert(whole.end(), of_leaf.begin(), of_leaf.begin() + kept);
    rest.insert(rest.end(), of_leaf.begin() + kept, of_leaf.end());
  }
  whole.insert(whole.end(), rest.begin(), rest.end());
  std::vector<Block> larger;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    if (i % count == 0) larger.push_back({{}, whole[i]->leaf});
    std::vector<std::int32_t>& nodes = larger.back().nodes;
    nodes.insert(nodes.end(), whole[i]->nodes.begin(), whole[i]->nodes.end());
  }
  return larger;
}

}  // namespace

RankGroups groups_of(std::int32_t rank, const Triple& triple, const Scope& mesh) {
  CHECK_LT(rank, mesh.size());
  const std::int32_t parameters = triple.parameters.size();
  return {strided(rank, parameters, 1), strided(rank, triple.gradients.size(), parameters),
          strided(rank, triple.state.size(), parameters), strided(rank, mesh.size(), parameters)};
}

GroupShape parameter_group(const Triple& triple) { return {triple.parameters, 1}; }
GroupShape gradient_group(const Triple& triple) {
  return alike(triple.parameters, triple.gradients);
}
GroupShape state_group(const Triple& triple) { return alike(triple.parameters, triple.state); }
GroupShape data_group(const Triple& triple, const Scope& mesh) {
  return alike(triple.parameters, mesh);
}

std::vector<std::int32_t> order_by_leaf(std::span<const std::int32_t> leaf_of_node,
                                        const Triple& triple) {
  std::vector<Block> blocks;
  for (std::size_t i = 0; i < leaf_of_node.size(); ++i) {
    blocks.push_back({{static_cast<std::int32_t>(i)}, leaf_of_node[i]});
  }
  std::int32_t size = 1;
  for (const Scope& scope : {triple.parameters, triple.gradients, triple.state}) {
    blocks = joined(blocks, static_cast<std::size_t>(scope.nodes / size));
    size = scope.nodes;
  }
  blocks = joined(blocks, 1);  // those of one leaf switch side by side, for groups of all ranks
  std::vector<std::int32_t> order;
  for (const Block& block : blocks) {
    order.insert(order.end(), block.nodes.begin(), block.nodes.end());
  }
  return order;
}

std::int64_t spine_bytes(const RankList& group, std::int64_t edge_bytes,
                         std::span<const std::int32_t> leaf_of_node, const Scope& mesh) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < group.size(); ++i) {
    const std::int32_t from = group[i] / mesh.ranks;
    const std::int32_t to = group[(i + 1) % group.size()] / mesh.ranks;
    const bool crosses =
        leaf_of_node[static_cast<std::size_t>(from)] != leaf_of_node[static_cast<std::size_t>(to)];
    if (crosses) sum += edge_bytes;
  }
  return sum;
}

}  // namespace sluice::shard
