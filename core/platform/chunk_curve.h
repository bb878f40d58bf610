#pragma once
// The bandwidth by a link's chunk curve for one request size.
//
// Thread contract: free functions.

#include <cstdint>

#include "core/platform/platform.h"

namespace sluice::platform {

// Bytes a second that one operation can reach on `link` when it is moved in requests of
// `chunk_bytes`; infinity where the link has no curve. Between two points: linear in the bandwidth
// over the logarithm of the size, which is how such curves are drawn and measured.
double chunk_bandwidth(const Link& link, Direction direction, std::int64_t chunk_bytes);

}  // namespace sluice::platform
