#include "core/shard/groups.h"

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

}  // namespace sluice::shard
