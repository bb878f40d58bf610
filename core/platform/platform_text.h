#pragma once
// A platform as a platform file again (docs/platform_format.md): what parse_platform() makes of it
// is the same platform, to six digits of its rates.
//
// Thread contract: free function.

#include <string>

#include "core/platform/platform.h"

namespace sluice::platform {

std::string platform_text(const Platform& platform);

}  // namespace sluice::platform
