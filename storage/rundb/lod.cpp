#include "storage/rundb/lod.h"

#include <algorithm>

#include "base/check.h"

namespace sluice::rundb {
namespace {

void add_to(LodRow& row, std::int64_t count, TimeNs busy_ns, TimeNs longest_ns,
            std::int64_t longest_name_id) {
  row.count += count;
  row.busy_ns += busy_ns;
  if (row.longest_name_id != 0 && longest_ns <= row.longest_ns) return;
  row.longest_ns = longest_ns;
  row.longest_name_id = longest_name_id;
}

}  // namespace

int lod_level_for(TimeNs width_ns) {
  int level = 0;
  while (level + 1 < kLodLevels && lod_width_ns(level) < width_ns) ++level;
  return level;
}

void LodBatch::clear() {
  by_bin_.clear();
  latest_ = {};
  bins_.clear();
  long_spans_.clear();
}

void LodBatch::add(const SpanRow& span) {
  CHECK(bins_.empty());
  const TimeNs end_ts = span.ts + span.dur;
  int level = 0;
  while (level + 1 < kLodLevels && span.dur >= kLongBins * lod_width_ns(level)) ++level;
  if (level > 0) long_spans_.push_back({span.track_id, level - 1, span.ts, end_ts, span.id});
  const int shift = lod_shift(level);
  // Arithmetic shifts: times of a simulated run may begin before 0.
  const std::int64_t first = span.ts >> shift;
  const std::int64_t last = std::max(first, (end_ts - 1) >> shift);
  for (std::int64_t bin = first; bin <= last; ++bin) {
    const TimeNs busy_ns =
        std::max<TimeNs>(0, std::min(end_ts, (bin + 1) << shift) - std::max(span.ts, bin << shift));
    add_to(row_of(span.track_id, level, bin), bin == first ? 1 : 0, busy_ns, span.dur,
           span.name_id);
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

// A bin of a level is what its eight bins of the finer one hold, and the spans that were long
// there.
void LodBatch::add_to_coarser(const LodRow& row) {
  if (row.level + 1 == kLodLevels) return;
  const int shift = lod_shift(1) - lod_shift(0);
  add_to(row_of(row.track_id, row.level + 1, row.bin >> shift), row.count, row.busy_ns,
         row.longest_ns, row.longest_name_id);
}

const std::vector<LodRow>& LodBatch::bins() {
  if (!bins_.empty()) return bins_;
  // Rows of a coarser level stand behind those of a finer one, so the loop comes to them, too.
  for (const auto& [key, row] : by_bin_) {
    add_to_coarser(row);
    bins_.push_back(row);
  }
  return bins_;
}

}  // namespace sluice::rundb
