#include "profiler/cupti/activity_buffers.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/check.h"

namespace sluice::cupti {
namespace {

std::atomic<ActivityBuffers*> attached_pool{nullptr};
Mutex attach_mutex;  // one attaches at a time; never taken in a callback

std::uint8_t* map_zeroed(std::size_t size_bytes) {
  void* memory =
      mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<std::uint8_t*>(memory);
}

}  // namespace

Result<std::unique_ptr<ActivityBuffers>> ActivityBuffers::create(
    const ActivityBufferOptions& options) {
  CHECK_GT(options.buffer_bytes, 0u);
  CHECK_GT(options.count_max, 0);
  const auto page_bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t buffer_bytes =
      (options.buffer_bytes + page_bytes - 1) / page_bytes * page_bytes;
  std::unique_ptr<ActivityBuffers> pool(new ActivityBuffers(buffer_bytes, options.count_max));
  for (int i = 0; i < std::min(options.preallocated_count, options.count_max); ++i) {
    std::uint8_t* data = map_zeroed(buffer_bytes);
    if (data == nullptr) {
      return make_error(ErrorCode::memory,
                        "CUPTI: no memory for {} activity buffers of {} bytes: free some, or "
                        "record without CUPTI",
                        options.preallocated_count, buffer_bytes);
    }
    // Touched now and not on a thread of the run.
    std::memset(data, 0, buffer_bytes);
    MutexLock lock(pool->mutex_);
    pool->buffers_.push_back({data, State::idle, 0});
    pool->idle_.push_back(data);
  }
  return pool;
}

ActivityBuffers::ActivityBuffers(std::size_t buffer_bytes, int count_max)
    : buffer_bytes_(buffer_bytes), count_max_(count_max) {
  MutexLock lock(mutex_);
  const auto count = static_cast<std::size_t>(count_max);
  buffers_.reserve(count);
  idle_.reserve(count);
  completed_.reserve(count);
}

ActivityBuffers::~ActivityBuffers() {
  MutexLock lock(mutex_);
  for (const Buffer& buffer : buffers_) munmap(buffer.data, buffer_bytes_);
}

bool ActivityBuffers::try_attach() {
  MutexLock lock(attach_mutex);
  ActivityBuffers* other = attached_pool.load(std::memory_order_acquire);
  if (other != nullptr) {
    MutexLock other_lock(other->mutex_);
    if (!other->closed_) return false;
  }
  attached_pool.store(this, std::memory_order_release);
  return true;
}

void ActivityBuffers::on_requested(std::uint8_t** buffer, std::size_t* size,
                                   std::size_t* record_count_max) {
  *buffer = nullptr;
  *size = 0;
  *record_count_max = 0;  // as many as fit
  if (ActivityBuffers* pool = attached_pool.load(std::memory_order_acquire)) {
    pool->request(buffer, size);
  }
}

void ActivityBuffers::on_completed(std::uint8_t* buffer, std::size_t, std::size_t valid_bytes) {
  if (ActivityBuffers* pool = attached_pool.load(std::memory_order_acquire)) {
    pool->complete(buffer, valid_bytes);
  }
}

void ActivityBuffers::request(std::uint8_t** buffer, std::size_t* size) noexcept {
  *buffer = nullptr;
  *size = 0;
  {
    MutexLock lock(mutex_);
    if (!closed_ && !idle_.empty()) {
      Buffer* idle = find(idle_.back());
      idle_.pop_back();
      idle->state = State::lent;
      counts_.lent += 1;
      *buffer = idle->data;
      *size = buffer_bytes_;
      return;
    }
    if (closed_ || static_cast<int>(buffers_.size()) + being_mapped_count_ >= count_max_) {
      counts_.refused += 1;
      return;
    }
    being_mapped_count_ += 1;
  }
  std::uint8_t* data = map_zeroed(buffer_bytes_);
  MutexLock lock(mutex_);
  being_mapped_count_ -= 1;
  if (data == nullptr) {
    counts_.refused += 1;
    return;
  }
  buffers_.push_back({data, State::lent, 0});
  counts_.lent += 1;
  *buffer = data;
  *size = buffer_bytes_;
}

void ActivityBuffers::complete(std::uint8_t* data, std::size_t valid_bytes) noexcept {
  bool is_late = false;
  {
    MutexLock lock(mutex_);
    Buffer* buffer = find(data);
    if (buffer == nullptr || buffer->state != State::lent) {
      counts_.foreign += 1;
      return;
    }
    counts_.lent -= 1;
    if (closed_) {
      *buffer = buffers_.back();
      buffers_.pop_back();
      is_late = true;
    } else if (valid_bytes == 0) {
      // Nothing was written into it, so it is as zeroed as it was.
      buffer->state = State::idle;
      idle_.push_back(data);
    } else {
      buffer->state = State::completed;
      buffer->valid_bytes = valid_bytes;
      completed_.push_back(data);
      counts_.completed += 1;
    }
  }
  if (is_late) unmap({&data, 1});
}

std::vector<CompletedBuffer> ActivityBuffers::take_completed() {
  std::vector<CompletedBuffer> taken;
  MutexLock lock(mutex_);
  for (const std::uint8_t* data : completed_) {
    Buffer* buffer = find(data);
    buffer->state = State::taken;
    taken.push_back({buffer->data, buffer->valid_bytes});
  }
  completed_.clear();
  return taken;
}

void ActivityBuffers::give_back(std::span<const CompletedBuffer> buffers) {
  for (const CompletedBuffer& given : buffers) std::memset(given.data, 0, buffer_bytes_);
  std::vector<std::uint8_t*> freed;
  {
    MutexLock lock(mutex_);
    for (const CompletedBuffer& given : buffers) {
      Buffer* buffer = find(given.data);
      CHECK(buffer != nullptr && buffer->state == State::taken);
      buffer->state = State::idle;
      idle_.push_back(given.data);
    }
    if (closed_) remove_idle(freed);
  }
  unmap(freed);
}

void ActivityBuffers::close() {
  std::vector<std::uint8_t*> freed;
  {
    MutexLock lock(mutex_);
    closed_ = true;
    // Buffers that were handed back and not taken are given up with the pool.
    for (const std::uint8_t* data : completed_) {
      Buffer* buffer = find(data);
      buffer->state = State::idle;
    }
    counts_.discarded += static_cast<std::int64_t>(completed_.size());
    completed_.clear();
    remove_idle(freed);
  }
  unmap(freed);
}

void ActivityBuffers::retire(std::unique_ptr<ActivityBuffers> buffers) {
  static Mutex mutex;
  // Never destroyed: callbacks may come while the program ends.
  static auto& retired = *new std::vector<std::unique_ptr<ActivityBuffers>>;
  buffers->close();
  MutexLock lock(mutex);
  retired.push_back(std::move(buffers));
}

ActivityBufferCounts ActivityBuffers::counts() const {
  MutexLock lock(mutex_);
  ActivityBufferCounts counts = counts_;
  counts.allocated = static_cast<std::int64_t>(buffers_.size());
  return counts;
}

ActivityBuffers::Buffer* ActivityBuffers::find(const std::uint8_t* data) {
  const auto found = std::find_if(buffers_.begin(), buffers_.end(),
                                  [data](const Buffer& buffer) { return buffer.data == data; });
  return found == buffers_.end() ? nullptr : &*found;
}

void ActivityBuffers::remove_idle(std::vector<std::uint8_t*>& freed) {
  for (const Buffer& buffer : buffers_) {
    if (buffer.state == State::idle) freed.push_back(buffer.data);
  }
  std::erase_if(buffers_, [](const Buffer& buffer) { return buffer.state == State::idle; });
  idle_.clear();
}

void ActivityBuffers::unmap(std::span<std::uint8_t* const> freed) const {
  for (std::uint8_t* data : freed) munmap(data, buffer_bytes_);
}

}  // namespace sluice::cupti
