#include "core/runtime/worker_pool.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <exception>

#include "base/check.h"
#include "base/clock.h"

namespace sluice::runtime {

WorkerPool::WorkerPool(int thread_count, int done_fd, const char* thread_name) : done_fd_(done_fd) {
  CHECK_GT(thread_count, 0);
  try {
    for (int i = 0; i < thread_count; ++i)
      threads_.emplace_back([this, thread_name] { work(thread_name); });
  } catch (const std::exception&) {
    // A thread was refused. No destructor runs, and those that have begun may not outlive the pool.
    {
      MutexLock lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) thread.join();
    throw;
  }
}

WorkerPool::~WorkerPool() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void WorkerPool::issue() {
  if (asked_.empty()) return;
  std::size_t count = 0;
  {
    MutexLock lock(mutex_);
    for (; !asked_.empty(); ++count) waiting_.push(asked_.pop());
  }
  for (std::size_t i = 0; i < std::min(count, threads_.size()); ++i) wake_.notify_one();
}

void WorkerPool::collect(OperationQueue& done) {
  if (!any_done_.load(std::memory_order_acquire)) return;
  MutexLock lock(mutex_);
  any_done_.store(false, std::memory_order_relaxed);
  while (!done_.empty()) done.push(done_.pop());
}

void WorkerPool::work(const char* thread_name) {
  // First of all: libraries that begin threads of their own here have them inherit the name.
  ::pthread_setname_np(::pthread_self(), thread_name);
  while (true) {
    OperationState* state = nullptr;
    {
      MutexLock lock(mutex_);
      while (waiting_.empty() && !stopping_) wake_.wait(mutex_);
      if (waiting_.empty()) return;
      state = waiting_.pop();
    }
    state->start_ns = monotonic_now_ns();
    state->status = state->operation.work.function();
    state->end_ns = monotonic_now_ns();
    {
      MutexLock lock(mutex_);
      done_.push(state);
      any_done_.store(true, std::memory_order_release);
    }
    const std::uint64_t one = 1;
    // An eventfd takes any write until its counter is near 2^64: there is no failure to handle.
    CHECK_EQ(write(done_fd_, &one, sizeof one), static_cast<ssize_t>(sizeof one));
  }
}

}  // namespace sluice::runtime
