#pragma once
// How many threads libtorch uses. OpenMP keeps that number, and the threads themselves, for each
// calling thread, so it is set on whichever thread computes.
//
// Thread contract: one call at a time.

#include <thread>

namespace sluice::model {

class ComputeThreads {
 public:
  explicit ComputeThreads(int thread_count);  // 0 = as many as this process may use
  void apply();                               // on the calling thread; free when it was last here

 private:
  int thread_count_;
  std::thread::id applied_on_;
};

}  // namespace sluice::model
