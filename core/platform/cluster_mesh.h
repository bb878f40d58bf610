#pragma once
// A cluster of which only some nodes, or some ranks of each, are used.
//
// Thread contract: free function.

#include "core/platform/cluster.h"

namespace sluice::platform {

// The first ranks of the first nodes. What was measured in groups that there are still counts.
// Errors (ErrorCode::config): more ranks or nodes than the cluster has; nodes that are no whole
// leaf switches, of several.
Result<Cluster> with_mesh(const Cluster& cluster, const Scope& mesh);

}  // namespace sluice::platform
