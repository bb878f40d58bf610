#pragma once
// Memory that this process has in RAM, for a look at each flush: one read of a file that stays
// open.
//
// Thread contract: one thread at a time.

#include <cstdint>

namespace sluice::collect {

class ProcessMemory {
 public:
  ProcessMemory();
  ~ProcessMemory();
  ProcessMemory(const ProcessMemory&) = delete;
  ProcessMemory& operator=(const ProcessMemory&) = delete;

  // -1 where /proc does not say.
  std::int64_t resident_bytes() const;

 private:
  const int descriptor_;  // /proc/self/statm
};

}  // namespace sluice::collect
