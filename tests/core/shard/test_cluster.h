#pragma once
// Clusters for tests: of links alone, or with bandwidths by seed for every group there can be.

#include <cstdint>
#include <random>

#include "core/platform/cluster.h"

namespace sluice::shard {

inline platform::Cluster test_cluster(const platform::Scope& mesh, std::int32_t nodes_a_leaf) {
  platform::Cluster cluster;
  cluster.mesh = mesh;
  cluster.nodes_a_leaf = nodes_a_leaf;
  cluster.within = {.bytes_per_s = 200e9, .latency_ns = 3'000};
  cluster.between = {.bytes_per_s = 100e9, .latency_ns = 8'000};
  cluster.spine = {.bytes_per_s = 150e9, .latency_ns = 11'000};
  return cluster;
}

// Three points for each collective in each group.
inline platform::Cluster measured_cluster(const platform::Scope& mesh, std::mt19937_64& random) {
  platform::Cluster cluster = test_cluster(mesh, mesh.nodes);
  std::uniform_real_distribution<double> rate(1e9, 300e9);
  for (const platform::Collective collective : platform::kCollectives) {
    for (std::int32_t ranks = 1; ranks <= mesh.ranks; ++ranks) {
      for (std::int32_t nodes = 1; nodes <= mesh.nodes; ++nodes) {
        if (ranks * nodes == 1) continue;
        cluster.collectives.push_back({collective,
                                       {ranks, nodes},
                                       {{1 << 20, rate(random)},
                                        {16 << 20, rate(random)},
                                        {std::int64_t{1} << 30, rate(random)}}});
      }
    }
  }
  return cluster;
}

}  // namespace sluice::shard
