#pragma once
// The things that coroutines of one runtime wait for besides operations: an event, a pool of
// numbered things, and the end of a group of tasks. Waiting is first come, first served; a failure
// of the runtime wakes everybody with ErrorCode::cancelled.
//
// Thread contract: owner thread only.

#include <utility>
#include <vector>

#include "core/runtime/runtime.h"

namespace sluice::runtime {

// Who waits for one thing, in order.
class WaitQueue {
 public:
  bool empty() const { return head_ == nullptr; }
  void push(Waiting* waiting) {
    waiting->queue_next = nullptr;
    (tail_ == nullptr ? head_ : tail_->queue_next) = waiting;
    tail_ = waiting;
  }
  Waiting* pop() {
    Waiting* waiting = head_;
    head_ = waiting->queue_next;
    if (head_ == nullptr) tail_ = nullptr;
    return waiting;
  }
  void clear() { head_ = tail_ = nullptr; }

 private:
  Waiting* head_ = nullptr;
  Waiting* tail_ = nullptr;
};

// Set once a step and reset for the next; waiting for one that is set goes on at once.
class Event {
 public:
  explicit Event(Runtime& runtime) : runtime_(runtime) {}
  void set();
  void reset() {
    CHECK_EQ(waiters_.empty(), true);
    is_set_ = false;
  }
  bool is_set() const { return is_set_; }

  class Awaiter {
   public:
    Awaiter(Event& event, Waiting waiting) : event_(event), waiting_(waiting) {}
    bool await_ready() const { return event_.is_set_ || event_.runtime_.failed(); }
    void await_suspend(std::coroutine_handle<> waiter);
    Status await_resume();

   private:
    Event& event_;
    Waiting waiting_;
  };
  // `waiting` says who waits and for what; only its labels are used.
  Awaiter wait(Waiting waiting) { return Awaiter(*this, waiting); }

 private:
  Runtime& runtime_;
  WaitQueue waiters_;
  bool is_set_ = false;
};

// Numbers 0..count-1 that stand for buffers, lanes or slots; handed out lowest first.
class Pool {
 public:
  // Where the pool holds buffers of a device, sinks are told how many are in use.
  Pool(Runtime& runtime, std::int32_t count, DeviceId device = kNoDevice);
  std::int32_t count() const { return count_; }

  // Returns its number to the pool when it goes.
  class Lease {
   public:
    Lease() = default;
    Lease(Pool* pool, std::int32_t index) : pool_(pool), index_(index) {}
    Lease(Lease&& other) noexcept
        : pool_(std::exchange(other.pool_, nullptr)), index_(other.index_) {}
    Lease& operator=(Lease&& other) noexcept {
      release();
      pool_ = std::exchange(other.pool_, nullptr);
      index_ = other.index_;
      return *this;
    }
    ~Lease() { release(); }
    void release() {
      if (pool_ != nullptr) std::exchange(pool_, nullptr)->give_back(index_);
    }
    std::int32_t index() const { return index_; }

   private:
    Pool* pool_ = nullptr;
    std::int32_t index_ = -1;
  };

  class Awaiter {
   public:
    Awaiter(Pool& pool, Waiting waiting) : pool_(pool), waiting_(waiting) {}
    bool await_ready() const;
    void await_suspend(std::coroutine_handle<> waiter);
    Result<Lease> await_resume();

   private:
    Pool& pool_;
    Waiting waiting_;
    bool suspended_ = false;
  };
  Awaiter acquire(Waiting waiting) { return Awaiter(*this, waiting); }

 private:
  void give_back(std::int32_t index);
  std::int32_t take_lowest();

  Runtime& runtime_;
  std::int32_t count_;
  DeviceId device_;
  std::vector<std::int32_t> free_;  // sorted, highest first
  WaitQueue waiters_;
};

// Tasks that run side by side. join() must have been awaited before the group goes.
class TaskGroup {
 public:
  explicit TaskGroup(Runtime& runtime) : runtime_(runtime) {}
  ~TaskGroup() { CHECK_EQ(running_count_, 0); }
  TaskGroup(const TaskGroup&) = delete;
  TaskGroup& operator=(const TaskGroup&) = delete;

  // Starts the task at once, up to its first wait. A task that fails fails the runtime.
  void spawn(Task<Status> task);

  class Joiner {
   public:
    explicit Joiner(TaskGroup& group) : group_(group) {}
    bool await_ready() const { return group_.running_count_ == 0; }
    void await_suspend(std::coroutine_handle<> waiter) { group_.joiner_ = waiter; }
    Status await_resume();

   private:
    TaskGroup& group_;
  };
  // Waits for all of them, also after a failure; the first failure, or ok.
  Joiner join() { return Joiner(*this); }

 private:
  detail::Detached run(Task<Status> task);
  void finish(Status status);

  Runtime& runtime_;
  std::int64_t running_count_ = 0;
  Status first_failure_;
  std::coroutine_handle<> joiner_;
};

}  // namespace sluice::runtime
