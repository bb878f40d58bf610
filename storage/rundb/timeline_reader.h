#pragma once
// The rows that a timeline is drawn from, at any zoom: levels of detail (storage/rundb/lod.h), long
// spans, and where spans stand in the file.
//
// Thread contract: that of its reader (storage/rundb/reader.h), which lives longer.

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/status.h"
#include "storage/rundb/lod.h"
#include "storage/rundb/reader.h"
#include "storage/rundb/rows.h"

namespace sluice::rundb {

class TimelineReader {
 public:
  explicit TimelineReader(Reader& reader) : file_(reader.file_.get()) {}

  // That were under way at some time from `begin` to `end`, both included, in order of their begin.
  Result<std::vector<SpanRow>> spans_of_track(std::int64_t track_id, TimeNs begin, TimeNs end);

  // The bins that a track is drawn from at a level, from `begin` to `end`.
  Result<std::vector<LodRow>> lod(std::int64_t track_id, int level, TimeNs begin, TimeNs end);
  // Bins of all tracks, in one go; those of a track in order of time.
  Result<std::vector<LodRow>> lod_of_all_tracks(int level, TimeNs begin, TimeNs end);
  Result<std::vector<LongSpanRow>> long_spans(std::int64_t track_id, int level, TimeNs begin,
                                              TimeNs end);
  // The same spans, with their names and bytes.
  Status each_long_span(std::int64_t track_id, int level, TimeNs begin, TimeNs end,
                        const std::function<void(const SpanRow&)>& use_span);

  // Those whose first span comes after that one, in order: what came since.
  Status each_span_run_after(std::int64_t first_id,
                             const std::function<void(const SpanRunRow&)>& use_run);

 private:
  struct LodWindow;
  // `rows` are those that the file has; no track: of all.
  Result<std::vector<LodRow>> with_spans_without_lod(std::vector<LodRow> rows,
                                                     const LodWindow& window,
                                                     std::optional<std::int64_t> track_id);

  detail::ReadConnection* file_;
};

}  // namespace sluice::rundb
