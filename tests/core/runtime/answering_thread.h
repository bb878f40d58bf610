#pragma once
// The other side of external work, as a thread: it collects the completions it was given and notes
// them when and how a test says: in an order of its own, late, twice, never.
//
// Thread contract: hand() from the owner thread of a runtime; the rest from the test's thread
// before or after the run.

#include <functional>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "core/runtime/completion.h"

namespace sluice::runtime {

class AnsweringThread {
 public:
  // Called on the thread once `count` completions have been handed over.
  using Answer = std::function<void(std::vector<Completion>& handed)>;
  AnsweringThread(std::size_t count, Answer answer)
      : count_(count), answer_(std::move(answer)), thread_([this] { run(); }) {}
  ~AnsweringThread() { join(); }

  Status hand(Completion completion) {
    {
      MutexLock lock(mutex_);
      handed_.push_back(std::move(completion));
    }
    wake_.notify_one();
    return ok_status();
  }
  // What was handed over, for notes that come later. After the run.
  std::vector<Completion>& handed() NO_THREAD_SAFETY_ANALYSIS {
    join();
    return handed_;
  }
  void join() {
    {
      MutexLock lock(mutex_);
      is_over_ = true;
    }
    wake_.notify_one();
    if (thread_.joinable()) thread_.join();
  }

 private:
  void run() NO_THREAD_SAFETY_ANALYSIS {
    {
      MutexLock lock(mutex_);
      while (handed_.size() < count_ && !is_over_) wake_.wait(mutex_);
      if (handed_.size() < count_) return;
    }
    answer_(handed_);
  }

  const std::size_t count_;
  const Answer answer_;
  Mutex mutex_;
  CondVar wake_;
  std::vector<Completion> handed_ GUARDED_BY(mutex_);
  bool is_over_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace sluice::runtime
