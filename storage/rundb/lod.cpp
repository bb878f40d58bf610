#include "storage/rundb/lod.h"

#include <algorithm>

namespace sluice::rundb {

int lod_level_for(TimeNs width_ns) {
  int level = 0;
  while (level + 1 < kLodLevels && lod_width_ns(level) < width_ns) ++level;
  return level;
}

void LodBatch::clear() {
  by_bin_.clear();
  latest_ = {};
  long_spans_.clear();
}

void LodBatch::add(const SpanRow& span) {
  const TimeNs end_ts = span.ts + span.dur;
  int long_level = -1;
  for (int level = 0; level < kLodLevels; ++level) {
    if (span.dur >= kLongBins * lod_width_ns(level) && level + 1 < kLodLevels) {
      long_level = level;
      continue;
    }
    const int shift = lod_shift(level);
    // Arithmetic shifts: times of a simulated run may begin before 0.
    const std::int64_t first = span.ts >> shift;
    const std::int64_t last = std::max(first, (end_ts - 1) >> shift);
    for (std::int64_t bin = first; bin <= last; ++bin) {
      LodRow& row = row_of(span.track_id, level, bin);
      if (bin == first) row.count += 1;
      row.busy_ns += std::max<TimeNs>(
          0, std::min(end_ts, (bin + 1) << shift) - std::max(span.ts, bin << shift));
      if (row.longest_name_id == 0 || span.dur > row.longest_ns) {
        row.longest_ns = span.dur;
        row.longest_name_id = span.name_id;
      }
    }
  }
  if (long_level >= 0) {
    long_spans_.push_back({span.track_id, long_level, span.ts, end_ts, span.id});
  }
}

LodRow& LodBatch::row_of(std::int64_t track_id, int level, std::int64_t bin) {
  LodRow*& latest = latest_[static_cast<std::size_t>(level)];
  if (latest == nullptr || latest->track_id != track_id || latest->bin != bin) {
    latest =
        &by_bin_[{level, lod_chunk_of(bin), track_id, bin}];  // nodes of a map stay where they are
    latest->track_id = track_id;
    latest->level = level;
    latest->bin = bin;
  }
  return *latest;
}

const std::vector<LodRow>& LodBatch::bins() {
  bins_.clear();
  for (const auto& [key, row] : by_bin_) bins_.push_back(row);
  return bins_;
}

}  // namespace sluice::rundb
