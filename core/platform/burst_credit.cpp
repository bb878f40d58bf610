#include "core/platform/burst_credit.h"

#include <algorithm>

#include "base/check.h"

namespace sluice::platform {

BurstCredit::BurstCredit(std::span<const Link> links) {
  const bool has_bursts = std::ranges::any_of(links, [](const Link& link) {
    return link.read_burst.size_bytes > 0 || link.write_burst.size_bytes > 0;
  });
  if (!has_bursts) return;
  const auto bucket = [](const Burst& burst, double bytes_per_s) {
    return Bucket{.most_bytes = static_cast<double>(burst.size_bytes),
                  .bytes_per_s = bytes_per_s,
                  .burst_bytes_per_s = burst.bytes_per_s,
                  .left_bytes = static_cast<double>(burst.size_bytes)};
  };
  for (const Link& link : links) {
    buckets_.push_back({bucket(link.read_burst, link.read_bytes_per_s),
                        bucket(link.write_burst, link.write_bytes_per_s)});
  }
}

double BurstCredit::begin(std::span<const LinkId> route, Direction direction,
                          std::int64_t size_bytes, TimeNs now_ns) {
  const auto size = static_cast<double>(size_bytes);
  if (buckets_.empty()) return size;
  bool is_first = true;
  double saved_bytes = 0;
  for (const LinkId link : route) {
    Bucket& bucket = bucket_of(link, direction);
    if (bucket.most_bytes == 0) continue;
    if (bucket.flow_count++ == 0) {
      const double idle_seconds = static_cast<double>(now_ns - bucket.idle_since_ns) * 1e-9;
      bucket.left_bytes =
          std::min(bucket.most_bytes, bucket.left_bytes + bucket.bytes_per_s * idle_seconds);
    }
    const double taken_bytes = std::min(bucket.left_bytes, size);
    bucket.left_bytes -= taken_bytes;
    const double saved = taken_bytes * (1 - bucket.bytes_per_s / bucket.burst_bytes_per_s);
    saved_bytes = is_first ? saved : std::min(saved_bytes, saved);
    is_first = false;
  }
  return size - saved_bytes;
}

void BurstCredit::end(std::span<const LinkId> route, Direction direction, TimeNs now_ns) {
  if (buckets_.empty()) return;
  for (const LinkId link : route) {
    Bucket& bucket = bucket_of(link, direction);
    if (bucket.most_bytes == 0) continue;
    CHECK_GT(bucket.flow_count, 0);
    if (--bucket.flow_count == 0) bucket.idle_since_ns = now_ns;
  }
}

}  // namespace sluice::platform
