#pragma once
// The memory that activity records cross in. CUPTI asks for an empty buffer on a thread of the run
// and hands it back when it is full or flushed, on that or on a thread of its own; the recording's
// thread takes the full ones, decodes them and puts them back.
//
// A callback only moves a buffer from one state to the next: nothing is parsed there, and CUPTI is
// never called while the lock is held, since CUPTI holds locks of its own when it calls back.
//
// The pool is bounded. Past the bound a request is refused, CUPTI drops records, and both are
// counted.
//
// Thread contract: every function from any thread. A pool that was attached is kept for the rest of
// the program (retire()), since a thread of CUPTI's may still be on its way into a callback.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"

namespace sluice::cupti {

struct ActivityBufferOptions {
  std::size_t buffer_bytes = std::size_t{4} << 20;  // rounded up to whole pages
  int count_max = 32;
  // Taken at once, so that the first requests find memory that is there.
  int preallocated_count = 4;
};

struct CompletedBuffer {
  std::uint8_t* data = nullptr;
  std::size_t valid_bytes = 0;  // as CUPTI said: to be looked at before it is believed
};

struct ActivityBufferCounts {
  std::int64_t completed = 0;  // handed back by CUPTI with records in them
  std::int64_t refused = 0;    // requests over the bound, without memory, or after close()
  std::int64_t foreign = 0;    // handed back, but never lent: left alone
  std::int64_t discarded = 0;  // handed back and not taken before close()
  std::int64_t lent = 0;       // with CUPTI now
  std::int64_t allocated = 0;  // there now
};

class ActivityBuffers {
 public:
  static Result<std::unique_ptr<ActivityBuffers>> create(const ActivityBufferOptions& options);
  ~ActivityBuffers();
  ActivityBuffers(const ActivityBuffers&) = delete;
  ActivityBuffers& operator=(const ActivityBuffers&) = delete;

  // CUPTI's callbacks have no argument of ours: from now on they lead here. False: another pool is
  // attached and not closed.
  bool try_attach();
  // For cuptiActivityRegisterCallbacks. Without a pool attached requests are refused.
  static void on_requested(std::uint8_t** buffer, std::size_t* size, std::size_t* record_count_max);
  static void on_completed(std::uint8_t* buffer, std::size_t size, std::size_t valid_bytes);

  // The work of the callbacks. A refused request gets a null buffer of size 0.
  void request(std::uint8_t** buffer, std::size_t* size) noexcept;
  void complete(std::uint8_t* buffer, std::size_t valid_bytes) noexcept;

  // All that were handed back since, oldest first. Each is given back.
  std::vector<CompletedBuffer> take_completed();
  // Zeroes them (so that CUPTI need not, on a thread of the run) and lets them be lent again.
  void give_back(std::span<const CompletedBuffer> buffers);

  // Refuses all requests and frees what is not with CUPTI; the rest when it comes back.
  void close();
  // Closes it and keeps it for late callbacks.
  static void retire(std::unique_ptr<ActivityBuffers> buffers);

  ActivityBufferCounts counts() const;
  std::size_t buffer_bytes() const { return buffer_bytes_; }

 private:
  enum class State : std::uint8_t { idle, lent, completed, taken };
  struct Buffer {
    std::uint8_t* data;
    State state;
    std::size_t valid_bytes;
  };

  ActivityBuffers(std::size_t buffer_bytes, int count_max);
  Buffer* find(const std::uint8_t* data) REQUIRES(mutex_);
  // Takes freed ones out of the table into `freed`, which the caller unmaps without the lock.
  void remove_idle(std::vector<std::uint8_t*>& freed) REQUIRES(mutex_);
  void unmap(std::span<std::uint8_t* const> freed) const;

  const std::size_t buffer_bytes_;
  const int count_max_;

  mutable Mutex mutex_;
  // At most count_max_, room for which is reserved: callbacks do not allocate in the table.
  std::vector<Buffer> buffers_ GUARDED_BY(mutex_);
  std::vector<std::uint8_t*> idle_ GUARDED_BY(mutex_);       // last in, first out: warm memory
  std::vector<std::uint8_t*> completed_ GUARDED_BY(mutex_);  // oldest first
  int being_mapped_count_ GUARDED_BY(mutex_) = 0;
  bool closed_ GUARDED_BY(mutex_) = false;
  ActivityBufferCounts counts_ GUARDED_BY(mutex_);
};

}  // namespace sluice::cupti
