#pragma once
// Table [cluster] and rows [[collective]] of a platform file.
//
// Thread contract: free functions.

#include <optional>

#include "core/platform/cluster.h"
#include "core/platform/toml_table.h"

namespace sluice::platform {

// Nothing where the file has no [cluster].
Result<std::optional<Cluster>> parse_cluster(const TomlTable& root);

}  // namespace sluice::platform
