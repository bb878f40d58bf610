#pragma once
// Table span_run in memory, kept up as batches come: how many spans a stretch of time holds is
// known without reading any of them.
//
// Thread contract: one thread at a time.

#include <map>
#include <vector>

#include "base/status.h"
#include "storage/rundb/reader.h"

namespace sluice::gui {

// From the begin of a track's first span to the end of its last one.
struct TrackExtent {
  TimeNs begin_ts = 0;
  TimeNs end_ts = 0;
};

class SpanIndex {
 public:
  Status update(rundb::Reader& reader);

  bool is_empty() const { return runs_.empty(); }
  std::int64_t span_count() const { return span_count_; }
  std::int64_t last_id() const { return last_id_; }  // of the spans that it knows
  // The begin and end of all spans; 0 without any.
  TimeNs begin_ts() const { return begin_ts_; }
  TimeNs end_ts() const { return end_ts_; }
  // The tracks that have any span.
  const std::map<std::int64_t, TrackExtent>& used_tracks() const { return used_tracks_; }
  // About how many spans are under way from `begin` to `end`: of a run of spans that lies in it
  // only in part, that part.
  double estimate(TimeNs begin, TimeNs end) const;

 private:
  struct Run {
    TimeNs ts = 0;
    TimeNs end_ts = 0;
    std::int64_t count = 0;
  };
  void add(const rundb::SpanRunRow& row);

  std::vector<Run> runs_;
  std::map<std::int64_t, TrackExtent> used_tracks_;
  std::int64_t last_first_id_ = -1;
  std::int64_t last_id_ = 0;
  std::int64_t span_count_ = 0;
  TimeNs begin_ts_ = 0;
  TimeNs end_ts_ = 0;
};

}  // namespace sluice::gui
