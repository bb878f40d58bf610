#include "core/platform/cluster_parser.h"

#include "base/nearest.h"
#include "core/platform/link_parser.h"

namespace sluice::platform {
namespace {

Result<std::int32_t> parse_count(const TomlTable& table, std::string_view key) {
  ASSIGN_OR_RETURN(const std::int64_t count, table.integer(key));
  if (count >= 1 && count <= kRanksMax) return static_cast<std::int32_t>(count);
  return table.error(key, fmt::format("{} is not in 1 to {}", count, kRanksMax));
}

Result<double> parse_bandwidth(std::string_view written) {
  ASSIGN_OR_RETURN(const double per_second, parse_byte_rate(written));
  return check_rate(per_second, written);
}

Result<ClusterLink> parse_cluster_link(const TomlTable& cluster, std::string_view key) {
  static const std::array<std::string, 2> kKeys = {"bandwidth", "latency"};
  ASSIGN_OR_RETURN(const TomlTable table, cluster.table(key));
  RETURN_IF_ERROR(table.allow_only(kKeys));
  ClusterLink link;
  ASSIGN_OR_RETURN(link.bytes_per_s, table.quantity("bandwidth", parse_bandwidth));
  ASSIGN_OR_RETURN(link.latency_ns, parse_optional_duration(table, "latency"));
  return link;
}

// A link that nothing crosses needs no rate: whoever gives one all the same is asked for what would
// make it one.
Status parse_cluster_links(const TomlTable& table, Cluster& cluster) {
  const auto parse = [&](const char* key, bool is_crossed, const char* why_not,
                         ClusterLink& link) -> Status {
    if (!is_crossed) return table.has(key) ? table.error(key, why_not) : ok_status();
    ASSIGN_OR_RETURN(link, parse_cluster_link(table, key));
    return ok_status();
  };
  RETURN_IF_ERROR(parse("within", cluster.mesh.ranks > 1,
                        "is between ranks of a node, and `ranks` is 1", cluster.within));
  RETURN_IF_ERROR(parse("between", cluster.mesh.nodes > 1, "is between nodes, and `nodes` is 1",
                        cluster.between));
  return parse("spine", cluster.nodes_a_leaf < cluster.mesh.nodes,
               "is between leaf switches, and all nodes are under one; give `nodes_a_leaf`",
               cluster.spine);
}

Result<Cluster> parse_cluster_table(const TomlTable& table) {
  static const std::array<std::string, 9> kKeys = {
      "ranks", "nodes", "nodes_a_leaf", "within", "between", "spine", "memory", "adamw", "step"};
  RETURN_IF_ERROR(table.allow_only(kKeys));
  Cluster cluster;
  ASSIGN_OR_RETURN(cluster.mesh.ranks, parse_count(table, "ranks"));
  ASSIGN_OR_RETURN(cluster.mesh.nodes, parse_count(table, "nodes"));
  cluster.nodes_a_leaf = cluster.mesh.nodes;
  if (table.has("nodes_a_leaf")) {
    ASSIGN_OR_RETURN(cluster.nodes_a_leaf, parse_count(table, "nodes_a_leaf"));
    if (cluster.mesh.nodes % cluster.nodes_a_leaf != 0) {
      return table.error("nodes_a_leaf",
                         fmt::format("{} nodes are not a multiple of it", cluster.mesh.nodes));
    }
  }
  RETURN_IF_ERROR(parse_cluster_links(table, cluster));
  ASSIGN_OR_RETURN(cluster.memory_bytes, parse_optional_bytes(table, "memory"));
  ASSIGN_OR_RETURN(cluster.step_ns, parse_optional_duration(table, "step"));
  if (table.has("adamw")) {
    const auto parse = [](std::string_view written) -> Result<double> {
      ASSIGN_OR_RETURN(const double per_second, parse_rate(written, "elem/s"));
      return check_rate(per_second, written);
    };
    ASSIGN_OR_RETURN(cluster.update_elements_per_s, table.quantity("adamw", parse));
  }
  return cluster;
}

Result<Collective> parse_collective_name(const TomlTable& row) {
  ASSIGN_OR_RETURN(const std::string name, row.text("operation"));
  std::vector<std::string> known;
  for (const Collective collective : kCollectives) {
    known.push_back(collective_name(collective));
    if (known.back() == name) return collective;
  }
  return row.error("operation", fmt::format("'{}' is no collective{}; there are {}", name,
                                            did_you_mean(name, known), fmt::join(known, ", ")));
}

Result<Scope> parse_group(const TomlTable& row, const Cluster& cluster) {
  ASSIGN_OR_RETURN(const Scope group, row.quantity("group", parse_scope));
  if (group.size() == 1) return row.error("group", "one rank alone sends nothing");
  if (group.ranks <= cluster.mesh.ranks && group.nodes <= cluster.mesh.nodes) return group;
  return row.error("group", fmt::format("{} is more than the cluster's {}", scope_text(group),
                                        scope_text(cluster.mesh)));
}

Result<CollectivePoint> parse_point(const TomlTable& row, const std::vector<std::string>& pair) {
  if (pair.size() != 2) {
    return row.error("bandwidth",
                     "each row is [\"size\", \"bandwidth\"], such as [\"64 MB\", \"90 GB/s\"]");
  }
  const auto size_bytes = parse_bytes(pair[0]);
  if (!size_bytes.ok()) return row.error("bandwidth", size_bytes.error().message());
  if (*size_bytes < 1) return row.error("bandwidth", fmt::format("'{}' is no size", pair[0]));
  const auto bytes_per_s = parse_bandwidth(pair[1]);
  if (!bytes_per_s.ok()) return row.error("bandwidth", bytes_per_s.error().message());
  return CollectivePoint{*size_bytes, *bytes_per_s};
}

Result<CollectiveCurve> parse_curve(const TomlTable& row, const Cluster& cluster) {
  static const std::array<std::string, 3> kKeys = {"operation", "group", "bandwidth"};
  RETURN_IF_ERROR(row.allow_only(kKeys));
  CollectiveCurve curve;
  ASSIGN_OR_RETURN(curve.collective, parse_collective_name(row));
  ASSIGN_OR_RETURN(curve.group, parse_group(row, cluster));
  ASSIGN_OR_RETURN(const auto pairs, row.rows_of_texts("bandwidth"));
  if (pairs.empty()) return row.error("bandwidth", "is empty");
  for (const std::vector<std::string>& pair : pairs) {
    ASSIGN_OR_RETURN(const CollectivePoint point, parse_point(row, pair));
    if (!curve.points.empty() && point.size_bytes <= curve.points.back().size_bytes)
      return row.error("bandwidth", fmt::format("sizes rise, and '{}' does not", pair[0]));
    curve.points.push_back(point);
  }
  if (cluster.find(curve.collective, curve.group) == nullptr) return curve;
  return row.error("group",
                   fmt::format("{} of {} is there already", collective_name(curve.collective),
                               scope_text(curve.group)));
}

}  // namespace

Result<std::optional<Cluster>> parse_cluster(const TomlTable& root) {
  if (!root.has("cluster")) {
    if (!root.has("collective")) return std::optional<Cluster>();
    return root.error("collective", "needs [cluster], whose ranks do it");
  }
  ASSIGN_OR_RETURN(const TomlTable table, root.table("cluster"));
  ASSIGN_OR_RETURN(Cluster cluster, parse_cluster_table(table));
  if (!root.has("collective")) return std::optional<Cluster>(std::move(cluster));
  ASSIGN_OR_RETURN(const auto rows, root.tables("collective"));
  for (const TomlTable& row : rows) {
    ASSIGN_OR_RETURN(CollectiveCurve curve, parse_curve(row, cluster));
    cluster.collectives.push_back(std::move(curve));
  }
  return std::optional<Cluster>(std::move(cluster));
}

}  // namespace sluice::platform
