#pragma once
// Work that takes long, in a thread of its own: of several begun the last counts.
//
// Thread contract: one thread. Destroying it does not wait for the work under way, whose result
// nobody sees then; so the work may use nothing that is not its own.

#include <cstdint>
#include <functional>
#include <memory>
#include <thread>

#include "base/mutex.h"
#include "gui/data/published.h"

namespace sluice::gui {

template <typename T>
class Background {
 public:
  Background() : shared_(std::make_shared<Shared>()) {}
  ~Background() { forget(); }
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  // `wake` is called by the thread when the result is there.
  void begin(std::function<T()> work, std::function<void()> wake) {
    std::uint64_t number = 0;
    {
      const MutexLock lock(shared_->mutex);
      number = ++shared_->begun;
    }
    std::thread([shared = shared_, work = std::move(work), wake = std::move(wake), number] {
      auto result = std::make_shared<const T>(work());
      const MutexLock lock(shared->mutex);
      if (shared->begun != number) return;  // another one counts, or nobody is left to be woken
      shared->done = number;
      shared->result.publish(std::move(result));
      wake();
    }).detach();
  }
  // No result, and none to come of what was begun.
  void forget() {
    const MutexLock lock(shared_->mutex);
    shared_->done = ++shared_->begun;
    shared_->result.publish(nullptr);
  }
  // Null: none yet. While further work is under way, the one before.
  std::shared_ptr<const T> result() const { return shared_->result.latest(); }
  bool is_working() const {
    const MutexLock lock(shared_->mutex);
    return shared_->done != shared_->begun;
  }

 private:
  struct Shared {
    Published<T> result;
    Mutex mutex;
    std::uint64_t begun GUARDED_BY(mutex) = 0;
    std::uint64_t done GUARDED_BY(mutex) = 0;
  };
  std::shared_ptr<Shared> shared_;
};

}  // namespace sluice::gui
