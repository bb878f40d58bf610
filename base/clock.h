#pragma once
// The one monotonic clock of the machine. Everything that is recorded with real time uses this
// base.
//
// Thread contract: free functions, any thread.

#include <time.h>

#include "base/units.h"

namespace sluice {

inline TimeNs monotonic_now_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<TimeNs>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

}  // namespace sluice
