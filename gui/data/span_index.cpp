#include "gui/data/span_index.h"

#include <algorithm>

#include "gui/data/cells.h"

namespace sluice::gui {

Status SpanIndex::update(rundb::Reader& reader) {
  return reader.each_row_with(
      "SELECT first_id, last_id, ts, end_ts, track_id FROM span_run WHERE first_id > ?1 "
      "ORDER BY first_id",
      {last_first_id_}, [this](std::span<const rundb::Cell> row) {
        last_first_id_ = integer_of(row[0]);
        last_id_ = std::max(last_id_, integer_of(row[1]));
        const Run run{.ts = integer_of(row[2]),
                      .end_ts = integer_of(row[3]),
                      .count = integer_of(row[1]) - last_first_id_ + 1};
        begin_ts_ = runs_.empty() ? run.ts : std::min(begin_ts_, run.ts);
        end_ts_ = runs_.empty() ? run.end_ts : std::max(end_ts_, run.end_ts);
        span_count_ += run.count;
        used_tracks_.insert(integer_of(row[4]));
        runs_.push_back(run);
        return ok_status();
      });
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
