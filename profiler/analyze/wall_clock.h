#pragma once
// The calendar's time of what a run recorded, by the snapshots in which its clock and the calendar
// were read together (table clock_snapshot).
//
// Thread contract: plain data; of_run() uses its reader.

#include <cstddef>
#include <vector>

#include "base/status.h"
#include "base/units.h"
#include "storage/rundb/reader.h"

namespace sluice::analyze {

// Asked for steps in order of their ids, and for what lies between: a machine that was restarted
// begins its clock anew, so that a time alone does not say which stretch of the record it is of.
class WallClock {
 public:
  static Result<WallClock> of_run(rundb::Reader& reader);
  // By the snapshots of a run's own clock, in the order in which they were taken.
  explicit WallClock(std::vector<rundb::ClockRow> snapshots) : snapshots_(std::move(snapshots)) {}

  // Nanoseconds since 1970 of the run's time `ts`. A record without a snapshot, as of a simulated
  // run, has the run's own time.
  TimeNs realtime_of(TimeNs ts);

 private:
  std::vector<rundb::ClockRow> snapshots_;
  std::size_t stretch_ = 0;  // of the time that was asked for last
  TimeNs last_ts_ = 0;
};

}  // namespace sluice::analyze
