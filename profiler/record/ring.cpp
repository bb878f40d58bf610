#include "profiler/record/ring.h"

#include <algorithm>
#include <bit>

namespace sluice::record {

Ring::Ring(std::size_t capacity, std::uint32_t index)
    : mask_(std::bit_ceil(std::max<std::size_t>(capacity, 1)) - 1),
      index_(index),
      slots_(std::make_unique<Record[]>(mask_ + 1)) {}

std::size_t Ring::drain(std::vector<Record>& into, std::size_t at_most) {
  const std::uint64_t head = head_.load(std::memory_order_relaxed);
  const std::uint64_t waiting_count = tail_.load(std::memory_order_acquire) - head;
  const std::size_t count = std::min<std::size_t>(waiting_count, at_most);

  const std::size_t first = head & mask_;
  const std::size_t before_wrap = std::min<std::size_t>(count, capacity() - first);
  into.insert(into.end(), slots_.get() + first, slots_.get() + first + before_wrap);
  into.insert(into.end(), slots_.get(), slots_.get() + (count - before_wrap));

  head_.store(head + count, std::memory_order_release);
  return count;
}

}  // namespace sluice::record
