#pragma once
// A call that a thread waits for itself, where there is no schedule to note its end to: start-up,
// tests, benchmarks.
//
// Thread contract: one thread starts the call and waits; the note comes from another. It outlives
// the call.

#include "base/mutex.h"
#include "base/status.h"

namespace sluice::collective {

class Pending {
 public:
  Pending() = default;
  Pending(const Pending&) = delete;
  Pending& operator=(const Pending&) = delete;

  // Blocks until the call has ended; its outcome. Once.
  Status wait() {
    MutexLock lock(mutex_);
    while (!is_ended_) ended_.wait(mutex_);
    return std::move(outcome_);
  }
  bool is_ended() {
    MutexLock lock(mutex_);
    return is_ended_;
  }
  void note(Status outcome) {
    MutexLock lock(mutex_);
    outcome_ = std::move(outcome);
    is_ended_ = true;
    ended_.notify_all();  // under the lock: who waits may let go of this at once
  }

 private:
  Mutex mutex_;
  CondVar ended_;
  Status outcome_ GUARDED_BY(mutex_);
  bool is_ended_ GUARDED_BY(mutex_) = false;
};

}  // namespace sluice::collective
