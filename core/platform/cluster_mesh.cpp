#include "core/platform/cluster_mesh.h"

#include <algorithm>

namespace sluice::platform {

Result<Cluster> with_mesh(const Cluster& cluster, const Scope& mesh) {
  if (mesh.ranks > cluster.mesh.ranks || mesh.nodes > cluster.mesh.nodes) {
    return make_error(ErrorCode::config,
                      "{} ranks (in a node x nodes) are more than the cluster's {}",
                      scope_text(mesh), scope_text(cluster.mesh));
  }
  Cluster cut = cluster;
  cut.mesh = mesh;
  cut.nodes_a_leaf = std::min(cluster.nodes_a_leaf, mesh.nodes);
  if (mesh.nodes % cut.nodes_a_leaf != 0) {
    return make_error(ErrorCode::config, "{} nodes are no multiple of the {} under a leaf switch",
                      mesh.nodes, cut.nodes_a_leaf);
  }
  if (mesh.ranks == 1) cut.within = {};
  if (mesh.nodes == 1) cut.between = {};
  if (cut.nodes_a_leaf == mesh.nodes) cut.spine = {};
  std::erase_if(cut.collectives, [&](const CollectiveCurve& curve) {
    return curve.group.ranks > mesh.ranks || curve.group.nodes > mesh.nodes;
  });
  return cut;
}

}  // namespace sluice::platform
