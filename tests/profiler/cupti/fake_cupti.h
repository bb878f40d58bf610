#pragma once
// CUPTI and a GPU behind it, by script: calls of the API and kernels write real records into the
// buffers that the recording lends, as CUPTI does, and come back through the callbacks. One at a
// time; its functions may be called from any thread.

#include <cstdint>
#include <string>
#include <vector>

#include "profiler/cupti/cupti_api.h"

namespace sluice::cupti {

class FakeCupti {
 public:
  FakeCupti();
  ~FakeCupti();
  FakeCupti(const FakeCupti&) = delete;
  FakeCupti& operator=(const FakeCupti&) = delete;

  CuptiApi api() const;

  // What the run does: a call, with the external ids of the calling thread before it, and the
  // kernel that it launched. Dropped, as CUPTI does it, where no buffer is to be had.
  void launch(const char* kernel, std::uint64_t dur_ns = 1000);
  // While they are held, only forced flushes return anything.
  void hold_buffers(bool held);
  // Hands back what it has filled, as a thread of CUPTI's does.
  void deliver();

  // What it was asked, in order: "enable 10", "set 2 = 16", ...
  std::vector<std::string> calls() const;
  // The next call that begins so is answered with the result, and so are all after it.
  void fail(const std::string& call, CUptiResult result);
  void set_clock_offset(std::int64_t offset_ns);
};

}  // namespace sluice::cupti
