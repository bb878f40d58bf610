#pragma once
// Measured ranks as [cluster] and [[collective]] of a platform file (docs/platform_format.md).
//
// Thread contract: free functions.

#include <string>
#include <string_view>

#include "core/calibrate/ranks/collective_timing.h"
#include "core/platform/platform.h"

namespace sluice::calibrate {

// A larger tensor never counts as shorter than a smaller one. The links are those of the measured
// all_gathers: in a node, and over all nodes. What is not measured comes from `before`, which may
// be null: memory, update and what a step costs besides; and for as many nodes, leaf switches.
platform::Cluster measured_cluster(const RankFigures& figures, const platform::Cluster* before);

// The file with that cluster at its end, in place of those tables that it had, and all else as it
// is, with its comments. `note` is a comment of one line in them. Errors (ErrorCode::config):
// the file is no platform, or is written so that its tables cannot be told from one another.
Result<std::string> with_cluster(std::string_view toml, const std::string& path,
                                 const platform::Cluster& cluster, const std::string& note);

}  // namespace sluice::calibrate
