#include "profiler/analyze/rank_clock.h"

#include <algorithm>
#include <cmath>

namespace sluice::analyze {

Result<RankClock> RankClock::of(const std::vector<rundb::ClockOffsetRow>& rows) {
  RankClock clock;
  for (const rundb::ClockOffsetRow& row : rows) {
    clock.bound_ns_ = std::max(clock.bound_ns_, row.bound);
    if (!clock.stretches_.empty() && row.ts < clock.stretches_.back().end.ts) {
      return make_error(ErrorCode::config,
                        "its clock began anew in the middle of the record, as when a machine is "
                        "restarted before a resume; times before and after have no common axis");
    }
    if (row.at == rundb::OffsetAt::end && !clock.stretches_.empty()) {
      clock.stretches_.back().end = row;
    } else {
      clock.stretches_.push_back({row, row});
    }
  }
  if (clock.stretches_.empty()) {
    return make_error(
        ErrorCode::config,
        "it does not say how far its clock is from rank 0's; the run was ended before "
        "its ranks had compared them");
  }
  return clock;
}

TimeNs RankClock::to_first(TimeNs ts) const {
  if (stretches_.empty()) return ts;
  const auto after = std::ranges::upper_bound(
      stretches_, ts, {}, [](const Stretch& stretch) { return stretch.begin.ts; });
  const Stretch& stretch = after == stretches_.begin() ? *after : *(after - 1);
  const TimeNs length = stretch.end.ts - stretch.begin.ts;
  if (length <= 0 || ts <= stretch.begin.ts) return ts + stretch.begin.offset;
  const double part = static_cast<double>(std::min(ts, stretch.end.ts) - stretch.begin.ts) /
                      static_cast<double>(length);
  const auto more = static_cast<double>(stretch.end.offset - stretch.begin.offset);
  return ts + stretch.begin.offset + std::llround(part * more);
}

TimeNs RankClock::drift_ns() const {
  TimeNs drift_ns = 0;
  for (const Stretch& stretch : stretches_)
    drift_ns += std::abs(stretch.end.offset - stretch.begin.offset);
  return drift_ns;
}

}  // namespace sluice::analyze
