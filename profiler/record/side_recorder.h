#pragma once
// A recorder beside the rings' producers, such as the GPU's (profiler/cupti): its spans come
// through a ring like all others, and what it counts of itself and how it read the clocks through
// this, so that the run database says what its times rest on and what it lost.
//
// Thread contract: every function from any thread.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sluice::record {

struct SideCount {
  const char* name;
  std::int64_t value;  // since the start
  bool is_loss;
  const char* description;
};

// The clock that its times were converted from, read with the run's clock.
struct ClockReading {
  std::int64_t ts;           // of the run's clock
  std::int64_t realtime_ts;  // CLOCK_REALTIME
};

class SideRecorder {
 public:
  virtual ~SideRecorder() = default;
  virtual const char* clock_name() const = 0;
  virtual std::vector<SideCount> side_counts() const = 0;
  // From the `from`th on that there ever was.
  virtual std::vector<ClockReading> clock_readings_since(std::size_t from) const = 0;
};

}  // namespace sluice::record
