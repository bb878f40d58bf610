#pragma once
// A platform as a platform file again (docs/platform_format.md): what parse_platform() makes of it
// is the same platform, to six digits of its rates.
//
// Thread contract: free functions.

#include <string>

#include "core/platform/platform.h"

namespace sluice::platform {

std::string platform_text(const Platform& platform);
// Its tables [cluster] and [[collective]] alone, after an empty line.
std::string cluster_text(const Cluster& cluster);

}  // namespace sluice::platform
