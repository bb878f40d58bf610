#pragma once
// The newest of something immutable, handed from the thread that makes it to those that look.
//
// Thread contract: any thread. The lock is held for the exchange of a pointer and never longer, so
// a thread that draws does not wait for one that reads a file.

#include <memory>
#include <utility>

#include "base/mutex.h"

namespace sluice::gui {

template <typename T>
class Published {
 public:
  // Null until something was published.
  std::shared_ptr<const T> latest() const {
    const MutexLock lock(mutex_);
    return value_;
  }
  void publish(std::shared_ptr<const T> value) {
    {
      const MutexLock lock(mutex_);
      std::swap(value_, value);
    }
    // The one before dies here, outside of the lock.
  }

 private:
  mutable Mutex mutex_;
  std::shared_ptr<const T> value_ GUARDED_BY(mutex_);
};

}  // namespace sluice::gui
