#include "storage/rundb/lod.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <tuple>

#include "base/check.h"

namespace sluice::rundb {
namespace {

auto key_of(const LodRow& row) {
  return std::tuple(row.level, lod_chunk_of(row.bin), row.track_id, row.bin);
}

void merge_into(LodRow& sum, const LodRow& row) {
  sum.count += row.count;
  sum.busy_ns += row.busy_ns;
  if (sum.longest_name_id != 0 && row.longest_ns <= sum.longest_ns) return;
  sum.longest_ns = row.longest_ns;
  sum.longest_name_id = row.longest_name_id;
}

// A batch's spans come sorted, so that most rows are of the bin of the row before.
void append(std::vector<LodRow>& rows, const LodRow& row) {
  if (!rows.empty() && key_of(rows.back()) == key_of(row)) {
    merge_into(rows.back(), row);
  } else {
    rows.push_back(row);
  }
}

}  // namespace

int finest_lod_level(std::span<const SpanRow> spans) {
  const int shift = lod_shift(0);
  std::int64_t short_count = 0;
  std::int64_t bin_count = 0;
  std::int64_t last_bin = std::numeric_limits<std::int64_t>::min();
  for (const SpanRow& span : spans) {
    if (span.dur >= kLongBins * lod_width_ns(0)) continue;
    const std::int64_t first = std::max(span.ts >> shift, last_bin + 1);
    last_bin = std::max(last_bin, (span.ts + std::max<TimeNs>(span.dur, 1) - 1) >> shift);
    short_count += 1;
    bin_count += std::max<std::int64_t>(0, last_bin - first + 1);
  }
  return short_count < 2 * bin_count ? kFinestLodLevelMax : 0;
}

int lod_level_for(TimeNs width_ns) {
  int level = 0;
  while (level + 1 < kLodLevels && lod_width_ns(level) < width_ns) ++level;
  return level;
}

void LodBatch::clear() {
  for (std::vector<LodRow>& rows : rows_) rows.clear();
  bins_.clear();
  long_spans_.clear();
}

void LodBatch::add(const SpanRow& span, int finest_level) {
  CHECK(bins_.empty());
  const TimeNs end_ts = span.end_ts();
  int level = 0;
  while (level + 1 < kLodLevels && span.dur >= kLongBins * lod_width_ns(level)) ++level;
  if (level > 0) long_spans_.push_back({span.track_id, level - 1, span.ts, end_ts, span.id});
  level = std::max(level, finest_level);
  const int shift = lod_shift(level);
  // Arithmetic shifts: times of a simulated run may begin before 0.
  const std::int64_t first = span.ts >> shift;
  const std::int64_t last = std::max(first, (end_ts - 1) >> shift);
  for (std::int64_t bin = first; bin <= last; ++bin) {
    const TimeNs busy_ns = std::min(end_ts, (bin + 1) << shift) - std::max(span.ts, bin << shift);
    add({.track_id = span.track_id,
         .level = level,
         .bin = bin,
         .count = bin == first ? 1 : 0,
         .busy_ns = std::max<TimeNs>(0, busy_ns),
         .longest_ns = span.dur,
         .longest_name_id = span.name_id});
  }
}

void LodBatch::add(const LodRow& row) { append(rows_[static_cast<std::size_t>(row.level)], row); }

const std::vector<LodRow>& LodBatch::bins_of(int level) {
  std::vector<LodRow>& rows = rows_[static_cast<std::size_t>(level)];
  if (std::ranges::is_sorted(rows, std::ranges::less_equal(), key_of)) return rows;
  std::ranges::sort(rows, {}, key_of);
  std::size_t count = 0;  // of the bins whose rows are together
  for (std::size_t i = 1; i < rows.size(); ++i) {
    if (key_of(rows[count]) == key_of(rows[i])) {
      merge_into(rows[count], rows[i]);
    } else {
      rows[++count] = rows[i];
    }
  }
  rows.resize(count + 1);
  return rows;
}

// A bin of a level is what its eight bins of the finer one hold, and the spans that were long
// there.
const std::vector<LodRow>& LodBatch::bins() {
  if (!bins_.empty()) return bins_;
  const int shift = lod_shift(1) - lod_shift(0);
  for (int level = 0; level < kLodLevels; ++level) {
    for (LodRow row : bins_of(level)) {
      bins_.push_back(row);
      row.level += 1;
      row.bin >>= shift;
      if (row.level < kLodLevels) add(row);
    }
  }
  return bins_;
}

}  // namespace sluice::rundb
