#pragma once
// How many threads libtorch uses. OpenMP keeps that number, and the threads themselves, for each
// calling thread, so it is set on whichever thread computes, before it does.
//
// Thread contract: immutable.

#include "base/status.h"

namespace sluice::model {

class ComputeThreads {
 public:
  explicit ComputeThreads(int thread_count);  // 0 = as many as this process may use
  void apply() const;                         // to the calling thread
  // The same, and they are there when it returns. A refused one is an error here; where OpenMP's
  // library is refused one later, it ends the program.
  Status start() const;
  // Whether the system has so many threads to give, by starting and ending them: OpenMP's library
  // ends the program where it is refused one, and says no more than that.
  Status check_startable() const;
  int count() const { return thread_count_; }

 private:
  int thread_count_;
};

}  // namespace sluice::model
