#include "core/shard/cost.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/check.h"
#include "base/saturating.h"
#include "base/units.h"

namespace sluice::shard {
namespace {

using platform::Cluster;

// exp_avg and exp_avg_sq, and the master weights where they are not the parameters.
std::int64_t state_element_bytes(ParameterKind precision) {
  return has_16_bits(precision) ? 12 : 8;
}

// Groups lie on nodes `node_stride` apart, from a multiple of all that they reach over on.
bool crosses_spine(const Cluster& cluster, const GroupShape& group) {
  const std::int32_t reach = group.scope.nodes * group.node_stride;
  return group.scope.nodes > 1 && cluster.nodes_a_leaf % reach != 0;
}

// Gathers and scatters go around a ring. What goes to all, or is summed from all, passes the ranks
// of a node one by one, and nodes as a tree.
std::int64_t rounds_of(Collective collective, const Scope& group) {
  const std::int64_t to_all =
      group.ranks - 1 + std::bit_width(static_cast<std::uint32_t>(group.nodes - 1));
  switch (collective) {
    case Collective::all_gather:
    case Collective::reduce_scatter:
      return group.size() - 1;
    case Collective::all_reduce:
      return 2 * to_all;
    case Collective::broadcast:
      return to_all;
  }
  return 0;
}

CollectiveCost measured_cost(const platform::CollectiveCurve& curve, std::int64_t size_bytes) {
  CollectiveCost cost;
  cost.is_measured = true;
  cost.edge_bytes = ring_edge_bytes(curve.collective, size_bytes, curve.group.size());
  cost.seconds = measured_seconds(curve, size_bytes);
  return cost;
}

}  // namespace

double measured_seconds(const platform::CollectiveCurve& curve, std::int64_t size_bytes) {
  const auto& points = curve.points;
  const auto seconds_at = [](const platform::CollectivePoint& point, std::int64_t bytes) {
    return static_cast<double>(bytes) / point.bytes_per_s;
  };
  const auto above =
      std::ranges::lower_bound(points, size_bytes, {}, &platform::CollectivePoint::size_bytes);
  if (above == points.end()) return seconds_at(points.back(), size_bytes);
  if (above == points.begin() || above->size_bytes == size_bytes) {
    return seconds_at(*above, size_bytes);
  }
  const platform::CollectivePoint& low = *(above - 1);
  const double share = static_cast<double>(size_bytes - low.size_bytes) /
                       static_cast<double>(above->size_bytes - low.size_bytes);
  return std::lerp(seconds_at(low, low.size_bytes), seconds_at(*above, above->size_bytes), share);
}

CollectiveCost collective_cost(const Cluster& cluster, Collective collective,
                               std::int64_t size_bytes, const GroupShape& group) {
  const Scope& scope = group.scope;
  CHECK_GT(scope.size(), 1);
  if (const auto* curve = cluster.find(collective, scope)) return measured_cost(*curve, size_bytes);
  CollectiveCost cost;
  cost.edge_bytes = ring_edge_bytes(collective, size_bytes, scope.size());
  const auto bytes = static_cast<double>(cost.edge_bytes);
  const auto take = [&](const platform::ClusterLink& link, std::int32_t times,
                        std::int32_t& times_of_it) {
    times_of_it = times;
    cost.latency_ns = std::max(cost.latency_ns, link.latency_ns);
    cost.seconds = std::max(cost.seconds, times * bytes / link.bytes_per_s);
  };
  if (scope.ranks > 1) take(cluster.within, 1, cost.within_times);
  // Each rank of a node is in one such group.
  const std::int32_t groups_of_node = cluster.mesh.ranks / scope.ranks;
  if (scope.nodes > 1) take(cluster.between, groups_of_node, cost.between_times);
  if (crosses_spine(cluster, group)) {
    const std::int32_t offsets = std::min(group.node_stride, cluster.nodes_a_leaf);
    take(cluster.spine, groups_of_node * offsets, cost.spine_times);
  }
  cost.latency_ns *= rounds_of(collective, scope);
  cost.seconds += static_cast<double>(cost.latency_ns) / 1e9;
  return cost;
}

double CommunicationTime::total() const {
  return std::accumulate(seconds.begin(), seconds.end(), 0.0);
}

CommunicationTime communication_time(const Cluster& cluster, const StepShape& step,
                                     const Triple& triple) {
  CommunicationTime time;
  for (const CollectiveUse& use : step_collectives(step, triple, cluster.mesh)) {
    time.seconds[static_cast<std::size_t>(use.purpose)] +=
        static_cast<double>(use.count) *
        collective_cost(cluster, use.collective, use.size_bytes, use.group).seconds;
  }
  return time;
}

RankMemory rank_memory(const StepShape& step, const Triple& triple, std::int64_t activation_bytes) {
  RankMemory memory;
  const std::int64_t held = held_elements(step, triple);
  const std::int64_t element_bytes = bytes_of(step.precision);
  memory.parameter_bytes = element_bytes * held;
  memory.gradient_bytes = element_bytes * divide_up(held, gradient_group(triple).scope.size());
  memory.state_bytes = state_element_bytes(step.precision) * owned_elements(step, triple);
  memory.activation_bytes = activation_bytes;
  memory.buffer_bytes = std::min(step.bucket_bytes, element_bytes * held);
  if (triple.parameters.size() == 1) return memory;
  const std::int64_t widest = std::ranges::max(step.module_elements);
  memory.buffer_bytes += 3 * element_bytes * widest;
  return memory;
}

TimeNs update_ns(const Cluster& cluster, const StepShape& step, const Triple& triple) {
  const std::int64_t owned = owned_elements(step, triple);
  double seconds = 0;
  if (cluster.update_elements_per_s > 0) {
    seconds = static_cast<double>(owned) / cluster.update_elements_per_s;
  }
  return saturating_sum(cluster.step_ns, saturating_whole(std::round(seconds * 1e9)));
}

}  // namespace sluice::shard
