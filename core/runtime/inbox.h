#pragma once
// Notes from other threads to the schedule, in the order in which they were sent: whoever computes
// elsewhere says that a gradient is there, or asks for a step. At most `capacity` notes wait; who
// sends one more waits for room.
//
// Thread contract: send() and close() from any thread; the rest on the owner thread.

#include <deque>
#include <memory>
#include <optional>
#include <utility>

#include "base/mutex.h"
#include "core/runtime/outside.h"
#include "core/runtime/runtime.h"

namespace sluice::runtime {

template <typename Note>
class Inbox final : private OutsideSource {
 public:
  // Errors: those of Waker::make(); ErrorCode::unsupported under a clock that nobody can wake.
  static Result<std::unique_ptr<Inbox>> make(Runtime& runtime, std::size_t capacity) {
    ASSIGN_OR_RETURN(Waker waker, runtime.make_waker());
    return std::unique_ptr<Inbox>(new Inbox(runtime, capacity, std::move(waker)));
  }
  ~Inbox() override { runtime_.remove_outside(this); }
  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;

  // False: it is closed, and nobody will read the note.
  bool send(Note note) {
    {
      MutexLock lock(mutex_);
      while (!is_closed_ && notes_.size() >= capacity_) room_.wait(mutex_);
      if (is_closed_) return false;
      notes_.push_back(std::move(note));
    }
    waker_.wake();
    return true;
  }
  // Notes that wait are still handed out; after them next() gives none.
  void close() {
    {
      MutexLock lock(mutex_);
      is_closed_ = true;
    }
    room_.notify_all();
    waker_.wake();
  }

  // The notes that nobody has been handed.
  std::deque<Note> take_rest() {
    MutexLock lock(mutex_);
    return std::exchange(notes_, {});
  }

  class Awaiter {
   public:
    Awaiter(Inbox& inbox, const char* what) : inbox_(inbox) { waiting_.what = what; }
    bool await_ready() const { return inbox_.runtime_.failed() || inbox_.has_come(); }
    void await_suspend(std::coroutine_handle<> waiter) {
      CHECK(inbox_.waiting_ == nullptr);
      waiting_.waiter = waiter;
      inbox_.waiting_ = &waiting_;
      inbox_.runtime_.add_waiting(&waiting_);
    }
    // None: the inbox is closed and empty.
    Result<std::optional<Note>> await_resume() {
      inbox_.waiting_ = nullptr;
      if (inbox_.runtime_.failed()) return inbox_.runtime_.cancelled_error();
      return inbox_.take();
    }

   private:
    Inbox& inbox_;
    Waiting waiting_;
  };
  // One coroutine at a time; `what` says what it waits for.
  Awaiter next(const char* what) { return Awaiter(*this, what); }

 private:
  Inbox(Runtime& runtime, std::size_t capacity, Waker waker)
      : runtime_(runtime), capacity_(capacity), waker_(std::move(waker)) {
    runtime_.add_outside(this);
  }

  bool has_come() {
    MutexLock lock(mutex_);
    return is_closed_ || !notes_.empty();
  }
  std::optional<Note> take() {
    std::optional<Note> note;
    {
      MutexLock lock(mutex_);
      if (notes_.empty()) return note;
      note = std::move(notes_.front());
      notes_.pop_front();
    }
    room_.notify_one();
    return note;
  }
  bool poll() override {
    if (!is_waited_for() || !has_come()) return false;
    runtime_.remove_waiting(waiting_);
    runtime_.make_ready(std::exchange(waiting_, nullptr)->waiter);
    return true;
  }
  bool is_waited_for() const override { return waiting_ != nullptr && !waiting_->cancelled; }

  Runtime& runtime_;
  const std::size_t capacity_;
  const Waker waker_;
  Waiting* waiting_ = nullptr;
  Mutex mutex_;
  CondVar room_;
  std::deque<Note> notes_ GUARDED_BY(mutex_);
  bool is_closed_ GUARDED_BY(mutex_) = false;
};

}  // namespace sluice::runtime
