#pragma once
// Samples where the threads of this process are, and notes when each leaves a processor and comes
// back, as far as the kernel lets a process ask (perf_event). A thread of its own turns the records
// of the kernel into rows ten times a second.
//
// Not seen: the kernel's own code (a thread in a system call runs, and has no samples), callers
// beyond a function without a frame pointer, what a thread waits for, other processes.
//
// Thread contract: the thread that opened it; side_counts() from any.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/status.h"
#include "profiler/record/side_recorder.h"
#include "profiler/sample/perf_rings.h"
#include "profiler/sample/sampled_rows.h"

namespace sluice::sample {

class HostSampler final : public record::SideRecorder {
 public:
  // Called on the sampler's thread.
  using Sink = std::function<void(rundb::SampleRows&&)>;

  // Threads that are there now are sampled, and those that they begin from now on, but nothing is
  // before start(). `thread_begins`, where there is one, is called first on the sampler's thread.
  // Errors: PerfRings::open()'s.
  static Result<std::unique_ptr<HostSampler>> open(const RingOptions& options,
                                                   void (*thread_begins)() = nullptr);
  ~HostSampler() override;  // stops

  // From now on; the sink lives until stop() returns.
  Status start(Sink sink);
  // Hands over what is left. Nothing happens where it did not start, or has stopped.
  void stop();

  // Between the two the sampler's thread is at no work, so that a fork copies no lock that it
  // holds. The child calls the third one in place of the second, and leaks the sampler: its thread
  // stays behind.
  void hold_for_fork() { mutex_.lock(); }
  void release_after_fork() { mutex_.unlock(); }
  void close_in_child() { rings_->close_in_child(); }

  const char* clock_name() const override { return "monotonic"; }
  std::vector<record::SideCount> side_counts() const override;
  std::vector<record::ClockReading> clock_readings_since(std::size_t) const override { return {}; }

 private:
  HostSampler(std::unique_ptr<PerfRings> rings, void (*thread_begins)());
  void run();
  void pass(bool is_last);

  const std::unique_ptr<PerfRings> rings_;
  void (*const thread_begins_)();
  Sink sink_;
  SampledRows rows_;                 // the thread's, until it is joined, as the next one
  std::vector<PerfRecord> pending_;  // too young to be put in order
  std::int64_t unread_count_ = 0;    // drains that met bytes which are no record
  std::atomic<std::int64_t> sample_count_{0};
  std::atomic<std::int64_t> lost_count_{0};
  std::atomic<std::int64_t> cut_count_{0};

  std::mutex mutex_;  // held during a pass
  std::condition_variable wake_;
  bool stop_asked_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace sluice::sample
