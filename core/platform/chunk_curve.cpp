#include "core/platform/chunk_curve.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace sluice::platform {
namespace {

double bandwidth(const ChunkPoint& point, Direction direction) {
  return direction == Direction::read ? point.read_bytes_per_s : point.write_bytes_per_s;
}

}  // namespace

double chunk_bandwidth(const Link& link, Direction direction, std::int64_t chunk_bytes) {
  CHECK_GT(chunk_bytes, 0);
  const auto& curve = link.chunk_curve;
  if (curve.empty()) return std::numeric_limits<double>::infinity();
  const auto above = std::lower_bound(
      curve.begin(), curve.end(), chunk_bytes,
      [](const ChunkPoint& point, std::int64_t bytes) { return point.chunk_bytes < bytes; });
  if (above == curve.begin()) return bandwidth(curve.front(), direction);
  if (above == curve.end()) return bandwidth(curve.back(), direction);
  const ChunkPoint& low = *(above - 1);
  const auto log_ratio = [&low](std::int64_t bytes) {
    return std::log(static_cast<double>(bytes) / static_cast<double>(low.chunk_bytes));
  };
  const double share = log_ratio(chunk_bytes) / log_ratio(above->chunk_bytes);
  return std::lerp(bandwidth(low, direction), bandwidth(*above, direction), share);
}

}  // namespace sluice::platform
