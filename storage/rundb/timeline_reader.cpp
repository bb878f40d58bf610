#include "storage/rundb/timeline_reader.h"

#include <algorithm>
#include <utility>

#include "storage/rundb/detail/by_begin.h"
#include "storage/rundb/detail/read_connection.h"

namespace sluice::rundb {

// The bins of a level that a window of time touches.
struct TimelineReader::LodWindow {
  std::int64_t level;
  std::int64_t first_bin;
  std::int64_t last_bin;
  LodWindow(int of_level, TimeNs begin, TimeNs end)
      : level(of_level),
        first_bin(begin >> lod_shift(of_level)),
        last_bin(end >> lod_shift(of_level)) {}
  int shift() const { return lod_shift(static_cast<int>(level)); }
  TimeNs begin() const { return first_bin << shift(); }
  TimeNs end() const { return (last_bin + 1) << shift(); }
  std::int64_t first_chunk() const { return lod_chunk_of(first_bin); }
  std::int64_t last_chunk() const { return lod_chunk_of(last_bin); }
};

Result<std::vector<SpanRow>> TimelineReader::spans_of_track(std::int64_t track_id, TimeNs begin,
                                                            TimeNs end) {
  ASSIGN_OR_RETURN(std::vector<SpanRow> rows,
                   file_->read<SpanRow>("spans_of_track", track_id, begin, end));
  return detail::by_begin(std::move(rows));
}

Result<std::vector<LodRow>> TimelineReader::lod(std::int64_t track_id, int level, TimeNs begin,
                                                TimeNs end) {
  const LodWindow window(level, begin, end);
  ASSIGN_OR_RETURN(std::vector<LodRow> rows,
                   file_->read<LodRow>("lod", track_id, window.level, window.first_bin,
                                       window.last_bin, window.first_chunk(), window.last_chunk()));
  return with_spans_without_lod(std::move(rows), window, track_id);
}

Result<std::vector<LodRow>> TimelineReader::lod_of_all_tracks(int level, TimeNs begin, TimeNs end) {
  const LodWindow window(level, begin, end);
  ASSIGN_OR_RETURN(std::vector<LodRow> rows,
                   file_->read<LodRow>("lod_of_all_tracks", window.level, window.first_bin,
                                       window.last_bin, window.first_chunk(), window.last_chunk()));
  return with_spans_without_lod(std::move(rows), window, std::nullopt);
}

Result<std::vector<LodRow>> TimelineReader::with_spans_without_lod(
    std::vector<LodRow> rows, const LodWindow& window, std::optional<std::int64_t> track_id) {
  const int level = static_cast<int>(window.level);
  if (level >= kFinestLodLevelMax) return rows;
  LodBatch together;
  bool has_spans = false;
  const auto add = [&](const SpanRow& span) {
    if (!std::exchange(has_spans, true))
      for (const LodRow& row : rows) together.add(row);
    together.add(span, level);
  };
  RETURN_IF_ERROR(file_->each<SpanRow>("spans_without_lod", add, window.level, window.begin(),
                                       window.end(), track_id));
  if (!has_spans) return rows;
  rows = together.bins_of(level);
  std::erase_if(rows, [&](const LodRow& row) {
    return row.bin < window.first_bin || row.bin > window.last_bin;
  });
  return rows;
}

Result<std::vector<LongSpanRow>> TimelineReader::long_spans(std::int64_t track_id, int level,
                                                            TimeNs begin, TimeNs end) {
  return file_->read<LongSpanRow>("long_spans", track_id, std::int64_t{level}, begin, end);
}

Status TimelineReader::each_long_span(std::int64_t track_id, int level, TimeNs begin, TimeNs end,
                                      const std::function<void(const SpanRow&)>& use_span) {
  return file_->each<SpanRow>("spans_long_at_level", use_span, track_id, std::int64_t{level}, begin,
                              end);
}

Status TimelineReader::each_span_run_after(std::int64_t first_id,
                                           const std::function<void(const SpanRunRow&)>& use_run) {
  return file_->each<SpanRunRow>("span_runs_after", use_run, first_id);
}

}  // namespace sluice::rundb
