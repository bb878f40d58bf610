#include "gui/data/span_index.h"

#include <algorithm>

#include "storage/rundb/timeline_reader.h"

namespace sluice::gui {

Status SpanIndex::update(rundb::Reader& reader) {
  return rundb::TimelineReader(reader).each_span_run_after(
      last_first_id_, [this](const rundb::SpanRunRow& row) { add(row); });
}

void SpanIndex::add(const rundb::SpanRunRow& row) {
  last_first_id_ = row.first_id;
  last_id_ = std::max(last_id_, row.last_id);
  const Run run{.ts = row.ts, .end_ts = row.end_ts, .count = row.last_id - row.first_id + 1};
  begin_ts_ = runs_.empty() ? run.ts : std::min(begin_ts_, run.ts);
  end_ts_ = runs_.empty() ? run.end_ts : std::max(end_ts_, run.end_ts);
  span_count_ += run.count;
  const auto [track, is_new] = used_tracks_.try_emplace(row.track_id, run.ts, run.end_ts);
  if (!is_new) {
    track->second.begin_ts = std::min(track->second.begin_ts, run.ts);
    track->second.end_ts = std::max(track->second.end_ts, run.end_ts);
  }
  runs_.push_back(run);
}

double SpanIndex::estimate(TimeNs begin, TimeNs end) const {
  double count = 0;
  for (const Run& run : runs_) {
    if (run.end_ts < begin || run.ts > end) continue;
    const auto inside =
        static_cast<double>(std::min(end, run.end_ts) - std::max(begin, run.ts)) + 1;
    const double share = inside / (static_cast<double>(run.end_ts - run.ts) + 1);
    count += std::max(1.0, share * static_cast<double>(run.count));
  }
  return count;
}

}  // namespace sluice::gui
