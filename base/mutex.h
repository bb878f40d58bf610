#pragma once
// std::mutex with the annotations that clang's -Wthread-safety checks: what a lock guards is said
// in the member's declaration (GUARDED_BY) and breaches do not compile there. Elsewhere they
// vanish.
//
// Thread contract: any thread; what a lock guards is said where it is declared.

#include <chrono>
#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define SLUICE_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define SLUICE_THREAD_ANNOTATION(x)
#endif
#define CAPABILITY(x) SLUICE_THREAD_ANNOTATION(capability(x))
#define SCOPED_CAPABILITY SLUICE_THREAD_ANNOTATION(scoped_lockable)
#define GUARDED_BY(x) SLUICE_THREAD_ANNOTATION(guarded_by(x))
#define REQUIRES(...) SLUICE_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define ACQUIRE(...) SLUICE_THREAD_ANNOTATION(acquire_capability(__VA_ARGS__))
#define RELEASE(...) SLUICE_THREAD_ANNOTATION(release_capability(__VA_ARGS__))
#define NO_THREAD_SAFETY_ANALYSIS SLUICE_THREAD_ANNOTATION(no_thread_safety_analysis)

namespace sluice {

class CAPABILITY("mutex") Mutex {
 public:
  void lock() ACQUIRE() { mutex_.lock(); }
  void unlock() RELEASE() { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

class SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() RELEASE() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

// Not std::condition_variable_any, whose own lock a woken thread meets before it has been let go.
class CondVar {
 public:
  // Waits until notified; may wake without cause, so call it in a loop over the condition.
  void wait(Mutex& mutex) REQUIRES(mutex) NO_THREAD_SAFETY_ANALYSIS {
    Held held(mutex.mutex_);
    condition_.wait(held.lock);
  }
  // The same, for about so long at the most.
  void wait_for(Mutex& mutex, std::chrono::nanoseconds dur)
      REQUIRES(mutex) NO_THREAD_SAFETY_ANALYSIS {
    Held held(mutex.mutex_);
    condition_.wait_for(held.lock, dur);
  }
  void notify_one() { condition_.notify_one(); }
  void notify_all() { condition_.notify_all(); }

 private:
  // A mutex that the caller has locked and keeps locked.
  struct Held {
    explicit Held(std::mutex& mutex) : lock(mutex, std::adopt_lock) {}
    ~Held() { lock.release(); }
    std::unique_lock<std::mutex> lock;
  };
  std::condition_variable condition_;
};

}  // namespace sluice
