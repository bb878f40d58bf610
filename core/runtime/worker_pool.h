#pragma once
// Threads that do the `function` work of operations: one pool for each kind of Workers. Operations
// queue through their own link, so there is no limit to hit and no memory to take: what is in
// flight is bounded by the schedule's buffers.
//
// Thread contract: start(), issue() and collect() from the owner thread. A function runs on one
// worker.

#include <atomic>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "core/runtime/clock.h"

namespace sluice::runtime {

class WorkerPool {
 public:
  // `done_fd` is an eventfd that is written to whenever something has finished.
  // `thread_name`: of each, as the system and the processor samples have it: the kind of the tracks
  // that have their operations; at most 15 characters.
  WorkerPool(int thread_count, int done_fd, const char* thread_name);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // Begins with the next issue(): waking a worker costs more than starting a small operation does
  // otherwise, and the operations that one instant sets off share it.
  void start(OperationState* state) { asked_.push(state); }
  void issue();
  // Moves finished operations to `done`, with start_ns, end_ns and status set.
  void collect(OperationQueue& done);

 private:
  void work(const char* thread_name);

  const int done_fd_;
  OperationQueue asked_;  // not issued yet; the owner's
  std::atomic<bool> any_done_ = false;
  Mutex mutex_;
  CondVar wake_;
  OperationQueue waiting_ GUARDED_BY(mutex_);
  OperationQueue done_ GUARDED_BY(mutex_);
  bool stopping_ GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace sluice::runtime
