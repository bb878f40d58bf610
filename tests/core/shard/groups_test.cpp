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

}  // namespace
}  // namespace sluice::shard
