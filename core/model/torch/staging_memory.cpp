#include "core/model/torch/staging_memory.h"

#include <algorithm>
#include <utility>

namespace sluice::model {

Result<io::PinnedBuffer> StagingMemory::take(std::int64_t size_bytes) {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::lower_bound(free_, size_bytes, {}, &io::PinnedBuffer::size_bytes);
  if (found != free_.end()) {
    io::PinnedBuffer buffer = std::move(*found);
    free_.erase(found);
    return buffer;
  }
  // All that are free are too small: the largest goes, so that there are never more than were in
  // use at once.
  if (!free_.empty()) free_.pop_back();
  return pinned_.allocate(size_bytes);
}

void StagingMemory::give_back(io::PinnedBuffer buffer) {
  if (buffer.size_bytes() == 0) return;
  const std::lock_guard lock(mutex_);
  const auto place =
      std::ranges::lower_bound(free_, buffer.size_bytes(), {}, &io::PinnedBuffer::size_bytes);
  free_.insert(place, std::move(buffer));
}

void StagingMemory::free_unused() {
  const std::lock_guard lock(mutex_);
  free_.clear();
}

}  // namespace sluice::model
