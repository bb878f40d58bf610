#pragma once
// The current device and, for each device, the current stream of a thread.
//
// Thread contract: each thread has its own.

#include <array>
#include <cstdint>

#include "soft/accelerator/accelerator.h"

namespace sluice::soft_accelerator {

struct Current {
  int device = 0;
  std::array<std::int64_t, kMostDevices> streams = {};  // libtorch's ids

  std::int64_t& stream_of(int index) { return streams[static_cast<std::size_t>(index)]; }
};

inline Current& current() {
  thread_local Current current;
  return current;
}

// libtorch's -1 is the current one.
inline int device_or_current(int device) { return device < 0 ? current().device : device; }

}  // namespace sluice::soft_accelerator
