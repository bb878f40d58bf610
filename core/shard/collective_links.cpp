#include "core/shard/collective_links.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace sluice::shard {
namespace {

using platform::Cluster;

// Any: latencies and crossings do not depend on the size.
constexpr std::int64_t kSomeBytes = 1 << 20;

// From one measured size to the next in so many steps: times are linear between sizes, and a
// link's bandwidth over the logarithm, which then differ by less than 1e-3.
constexpr int kStepsBetween = 64;

std::vector<std::int64_t> sizes_along(const platform::CollectiveCurve& curve) {
  std::vector<std::int64_t> sizes = {curve.points.front().size_bytes};
  for (std::size_t p = 1; p < curve.points.size(); ++p) {
    const auto low = static_cast<double>(curve.points[p - 1].size_bytes);
    const auto high = static_cast<double>(curve.points[p].size_bytes);
    for (int step = 1; step < kStepsBetween; ++step) {
      sizes.push_back(std::llround(low * std::pow(high / low, step / double{kStepsBetween})));
    }
    sizes.push_back(curve.points[p].size_bytes);
  }
  return sizes;
}

// Measured: the bandwidth of the tensor, for the bytes that cross an edge of the ring.
std::vector<platform::ChunkPoint> edge_curve(const platform::CollectiveCurve& curve) {
  std::vector<platform::ChunkPoint> points;
  for (const std::int64_t size_bytes : sizes_along(curve)) {
    const std::int64_t edge_bytes =
        ring_edge_bytes(curve.collective, size_bytes, curve.group.size());
    if (!points.empty() && edge_bytes <= points.back().chunk_bytes) continue;  // of a few bytes
    const double bytes_per_s =
        static_cast<double>(edge_bytes) / measured_seconds(curve, size_bytes);
    points.push_back({edge_bytes, bytes_per_s, bytes_per_s});
  }
  return points;
}

std::string kind_text(const CollectiveKind& kind) {
  std::string text =
      platform::collective_name(kind.collective) + " " + platform::scope_text(kind.group.scope);
  if (kind.group.node_stride > 1) text += fmt::format(" every {} nodes", kind.group.node_stride);
  return text;
}

}  // namespace

Result<Cluster> cut_to_ranks(const Cluster& cluster, std::int32_t rank_count) {
  const platform::Scope& mesh = cluster.mesh;
  Cluster cut = cluster;
  if (rank_count <= mesh.ranks) {
    cut.mesh = {rank_count, 1};
  } else {
    cut.mesh.nodes = rank_count / mesh.ranks;
  }
  const std::int32_t nodes = cut.mesh.nodes;
  const bool fills_leaves = nodes <= cluster.nodes_a_leaf || nodes % cluster.nodes_a_leaf == 0;
  if (cut.mesh.size() != rank_count || nodes > mesh.nodes || !fills_leaves) {
    return make_error(ErrorCode::config,
                      "{} ranks are no part of a [cluster] of {} ranks x nodes, {} nodes under a "
                      "leaf switch: take up to {} ranks, or all ranks of some nodes, and of more "
                      "nodes than a leaf switch has all of some leaf switches",
                      rank_count, platform::scope_text(mesh), cluster.nodes_a_leaf, mesh.ranks);
  }
  cut.nodes_a_leaf = std::min(cluster.nodes_a_leaf, nodes);
  return cut;
}

std::shared_ptr<const CollectiveLinks> CollectiveLinks::add_to(
    platform::Platform& platform, std::span<const CollectiveKind> kinds) {
  CHECK(platform.cluster.has_value());
  const Cluster& cluster = *platform.cluster;
  std::shared_ptr<CollectiveLinks> made(new CollectiveLinks(cluster.mesh));
  const ClusterLinks shared = add_cluster_links(platform);
  for (const CollectiveKind& kind : kinds) {
    if (kind.group.scope.size() == 1 || made->routes_.contains(key_of(kind))) continue;
    const CollectiveCost cost = collective_cost(cluster, kind.collective, kSomeBytes, kind.group);
    const platform::LinkId own =
        add_link(platform, kind_text(kind), kUnboundedBandwidth, cost.latency_ns);
    if (const auto* curve = cluster.find(kind.collective, kind.group.scope)) {
      platform.links.back().chunk_curve = edge_curve(*curve);
    }
    made->routes_.emplace(key_of(kind), route_over(shared, own, cost));
  }
  return made;
}

void CollectiveLinks::charge(runtime::Operation& operation, const CollectiveKind& kind,
                             std::int64_t size_bytes) const {
  const std::int32_t ranks = kind.group.scope.size();
  if (ranks == 1) return;
  const auto route = routes_.find(key_of(kind));
  CHECK(route != routes_.end());
  operation.label.size_bytes = ring_edge_bytes(kind.collective, size_bytes, ranks);
  operation.cost.route = route->second;
  // For the curve of what was measured: the tensor comes as a whole.
  operation.cost.inflight_bytes = operation.label.size_bytes;
}

}  // namespace sluice::shard
