#pragma once
// From CUPTI's clock to the run's. On Linux CUPTI stamps with CLOCK_REALTIME, which somebody may
// set; the run's clock is CLOCK_MONOTONIC. Both are read together about once a second, and a stamp
// is converted on the line between the two snapshots around it. No clock is handed to CUPTI: its
// own cannot be registered too late, and the snapshots let a conversion be done over.
//
// Thread contract: one thread at a time.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "base/units.h"
#include "profiler/cupti/cupti_recording.h"

namespace sluice::cupti {

TimeNs realtime_now_ns();

// The best of a few readings: CLOCK_REALTIME between two of CLOCK_MONOTONIC.
ClockSnapshot take_clock_snapshot();

class ClockSnapshots {
 public:
  // Snapshots come in the order of their monotonic times. Above `count_max` the oldest go:
  // the default is 18 hours of one a second.
  explicit ClockSnapshots(std::size_t count_max = 65536) : count_max_(count_max) {}

  void add(const ClockSnapshot& snapshot);

  // Between two snapshots: linear. Before the first and after the last: as far from it as CUPTI's
  // clock says. Between two across which CLOCK_REALTIME was set: as far from the nearer one.
  // There is at least one snapshot.
  TimeNs monotonic_from(TimeNs realtime_ts) const;

  // False where a stamp is so far from all snapshots that it cannot be one of this run's.
  bool is_near(TimeNs realtime_ts) const;

  // How often CLOCK_REALTIME was found to have been set.
  std::int64_t clock_set_count() const { return clock_set_count_; }

  // From the `from`th on that was ever added, as far as they are still there.
  std::vector<ClockSnapshot> since(std::size_t from) const;

 private:
  const std::size_t count_max_;
  std::deque<ClockSnapshot> snapshots_;
  std::size_t forgotten_count_ = 0;
  std::int64_t clock_set_count_ = 0;
};

}  // namespace sluice::cupti
