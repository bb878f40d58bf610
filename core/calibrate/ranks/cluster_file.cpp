#include "core/calibrate/ranks/cluster_file.h"

#include <algorithm>

#include "base/check.h"
#include "core/platform/platform_text.h"
#include "core/shard/collectives.h"

namespace sluice::calibrate {
namespace {

using platform::Collective;
using platform::Scope;

platform::CollectiveCurve curve_of(const CollectiveFigures& row) {
  platform::CollectiveCurve curve{row.collective, row.group, {}};
  double seconds = 0;
  for (const CollectiveTime& time : row.times) {
    seconds = std::max(seconds, time.seconds);
    curve.points.push_back({time.size_bytes, static_cast<double>(time.size_bytes) / seconds});
  }
  return curve;
}

// The largest tensor says how many bytes cross a link, the smallest what a hop takes.
platform::ClusterLink link_of(const platform::CollectiveCurve& gathers) {
  const std::int32_t ranks = gathers.group.size();
  const platform::CollectivePoint& most = gathers.points.back();
  const platform::CollectivePoint& least = gathers.points.front();
  const double edge_bytes =
      static_cast<double>(shard::ring_edge_bytes(Collective::all_gather, most.size_bytes, ranks));
  const double seconds = static_cast<double>(most.size_bytes) / most.bytes_per_s;
  const double least_seconds = static_cast<double>(least.size_bytes) / least.bytes_per_s;
  return {.bytes_per_s = edge_bytes / seconds,
          .latency_ns = static_cast<TimeNs>(least_seconds * 1e9 / (ranks - 1))};
}

std::string_view without_spaces(std::string_view line) {
  const std::size_t begin = line.find_first_not_of(" \t\r");
  return begin == std::string_view::npos ? std::string_view() : line.substr(begin);
}

// "[cluster]", "[ cluster.within ]", "[[collective]]  # measured": its name; "": no table begins.
std::string table_name(std::string_view line) {
  line = without_spaces(line);
  if (!line.starts_with('[')) return "";
  const std::size_t begin = line.find_first_not_of("[ \t");
  const std::size_t end = line.find_first_of("] \t", begin);
  if (end == std::string_view::npos) return "";
  constexpr std::string_view kBare =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.";
  const std::string_view name = line.substr(begin, end - begin);
  return name.find_first_not_of(kBare) == std::string_view::npos ? std::string(name) : "";
}

bool is_of_cluster(const std::string& table) {
  return table == "cluster" || table.starts_with("cluster.") || table == "collective";
}

// A comment right above a table that stays, stays with it.
std::string without_cluster(std::string_view toml) {
  std::string kept;
  std::string comments;  // the last lines of what is left out
  bool is_left_out = false;
  while (!toml.empty()) {
    const std::size_t end = toml.find('\n');
    const std::string line = std::string(toml.substr(0, end)) + "\n";
    const std::string table = table_name(line);
    const bool was_left_out = is_left_out;
    if (!table.empty()) is_left_out = is_of_cluster(table);
    if (was_left_out && !is_left_out) kept += "\n" + comments;
    comments = is_left_out && without_spaces(line).starts_with('#') ? comments + line : "";
    if (!is_left_out) kept += line;
    toml.remove_prefix(end == std::string_view::npos ? toml.size() : end + 1);
  }
  while (kept.ends_with("\n\n")) kept.pop_back();
  return kept;
}

// The tables with the note in them, so that it goes with them.
std::string noted_tables(const platform::Cluster& cluster, const std::string& note) {
  constexpr std::string_view kHeader = "\n[cluster]\n";
  const std::string tables = platform::cluster_text(cluster);
  CHECK(tables.starts_with(kHeader));
  return fmt::format("{}# {}\n{}", kHeader, note, tables.substr(kHeader.size()));
}

// The same machine but for its cluster, which is the one that was measured.
bool is_as_meant(const platform::Platform& before, const platform::Platform& after,
                 const platform::Cluster& cluster) {
  platform::Platform wanted = before;
  wanted.cluster = cluster;
  return platform::platform_text(wanted) == platform::platform_text(after);
}

}  // namespace

platform::Cluster measured_cluster(const RankFigures& figures, const platform::Cluster* before) {
  platform::Cluster cluster;
  cluster.mesh = figures.mesh;
  cluster.nodes_a_leaf = figures.mesh.nodes;
  if (before != nullptr) {
    cluster.memory_bytes = before->memory_bytes;
    cluster.update_elements_per_s = before->update_elements_per_s;
    cluster.step_ns = before->step_ns;
    if (before->mesh.nodes == figures.mesh.nodes) {
      cluster.nodes_a_leaf = before->nodes_a_leaf;
      cluster.spine = before->spine;
    }
  }
  for (const CollectiveFigures& row : figures.rows) cluster.collectives.push_back(curve_of(row));
  const Scope node{figures.mesh.ranks, 1};
  if (const auto* in_node = cluster.find(Collective::all_gather, node)) {
    cluster.within = link_of(*in_node);
  }
  if (figures.mesh.nodes > 1) {
    cluster.between = link_of(*cluster.find(Collective::all_gather, figures.mesh));
  }
  return cluster;
}

Result<std::string> with_cluster(std::string_view toml, const std::string& path,
                                 const platform::Cluster& cluster, const std::string& note) {
  ASSIGN_OR_RETURN(const platform::Platform before, platform::parse_platform(toml, path));
  const std::string text = without_cluster(toml) + noted_tables(cluster, note);
  const auto after = platform::parse_platform(text, path);
  if (after.ok() && is_as_meant(before, *after, cluster)) return text;
  return make_error(ErrorCode::config,
                    "{}: its [cluster] and [[collective]] cannot be told from the rest: take them "
                    "out, and measure again{}",
                    path, after.ok() ? "" : "; with the new ones: " + after.error().message());
}

}  // namespace sluice::calibrate
