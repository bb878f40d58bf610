#pragma once
// Pinned memory between a device and the drives, used over and over: taking it from the system is
// slow. What was given back stays for the next who takes as much or less.
//
// Thread contract: any thread.

#include <cstdint>
#include <mutex>
#include <vector>

#include "base/status.h"
#include "storage/io/page_aligned_buffer.h"

namespace sluice::model {

class StagingMemory {
 public:
  explicit StagingMemory(io::PinnedMemory& pinned) : pinned_(pinned) {}

  // The content of a buffer has no meaning. Errors: ErrorCode::memory.
  Result<io::PinnedBuffer> take(std::int64_t size_bytes);
  void give_back(io::PinnedBuffer buffer);
  // Memory that nobody has taken goes back to the system.
  void free_unused();

 private:
  io::PinnedMemory& pinned_;
  std::mutex mutex_;
  std::vector<io::PinnedBuffer> free_;  // ascending by size
};

}  // namespace sluice::model
