#pragma once
// A rank's time as rank 0's, by what the ranks recorded of their clocks (table clock_offset).
//
// Between the two readings of a stretch the offset goes in a line: clocks that run at different
// speeds drift evenly. After the last reading, and where there is but one, it stays.
//
// Thread contract: immutable after construction.

#include <vector>

#include "base/status.h"
#include "storage/rundb/rows.h"

namespace sluice::analyze {

class RankClock {
 public:
  RankClock() = default;  // rank 0's own
  // ErrorCode::config: there is no reading, or the clock began anew between two of them.
  static Result<RankClock> of(const std::vector<rundb::ClockOffsetRow>& rows);

  TimeNs to_first(TimeNs ts) const;
  // Each time of to_first() is at most this far from the true one.
  TimeNs bound_ns() const { return bound_ns_; }
  // By how much the offset changed over the readings.
  TimeNs drift_ns() const;

 private:
  struct Stretch {
    rundb::ClockOffsetRow begin;
    rundb::ClockOffsetRow end;  // as `begin` where there is no other reading
  };
  std::vector<Stretch> stretches_;
  TimeNs bound_ns_ = 0;
};

}  // namespace sluice::analyze
