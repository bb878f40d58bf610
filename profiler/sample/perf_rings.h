#pragma once
// The kernel's samples of this process: perf events of the software clock, one a thread that is
// there and a processor, which threads begun later inherit, and a ring a processor that their
// records come through. The kernel's own code is not sampled.
//
// Thread contract: open() and enable() from one thread, drain() from one at a time.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "profiler/sample/perf_records.h"

namespace sluice::sample {

inline constexpr int kSamplesPerSecondMax = 1000;

struct RingOptions {
  int samples_per_second = 1;  // of a thread that runs
  // A processor's ring, a power of two; less where the kernel grants no more.
  std::size_t ring_bytes_max = 512 << 10;
  // Where descriptors are not to lie where they came: the number from now on. null: they may.
  int (*keep_file)(int fd) = nullptr;
};

class PerfRings {
 public:
  // Nothing is sampled yet. ErrorCode::unsupported: the kernel refuses; the message says why as far
  // as the kernel does, and what to do. Needs a descriptor a thread and processor; of more threads
  // than kEventsMax allows, those that came last are left out.
  static Result<std::unique_ptr<PerfRings>> open(const RingOptions& options);
  ~PerfRings();
  PerfRings(const PerfRings&) = delete;
  PerfRings& operator=(const PerfRings&) = delete;

  // From now on.
  Status enable();
  void disable();

  // In the child of a fork, to which the kernel copies the descriptors and not the rings. Nothing
  // is to be asked of this afterwards.
  void close_in_child();

  // Appends what has come, each ring's in order of time; returns how many bytes could not be read.
  std::size_t drain(std::vector<PerfRecord>& into);

  // Threads that were there at open() and are not sampled.
  std::size_t left_out_count() const { return left_out_count_; }

 private:
  class Ring;
  PerfRings();

  std::vector<std::unique_ptr<Ring>> rings_;  // one a processor
  std::vector<int> more_events_;              // whose records come through those rings, too
  std::size_t left_out_count_ = 0;
};

}  // namespace sluice::sample
