#pragma once
// The seam between the schedule and time: start an operation, and give back those that have
// completed. Real, emulated and simulated; nothing above core/runtime asks which.
//
// Thread contract: used by the owner thread.

#include <cstddef>
#include <string_view>

#include "core/runtime/operation.h"

namespace sluice::runtime {

// A first-in first-out list of operations through OperationState::next; takes no memory.
class OperationQueue {
 public:
  bool empty() const { return head_ == nullptr; }
  OperationState* front() const { return head_; }
  void push(OperationState* state) {
    state->next = nullptr;
    (tail_ == nullptr ? head_ : tail_->next) = state;
    tail_ = state;
  }
  OperationState* pop() {
    OperationState* state = head_;
    head_ = state->next;
    if (head_ == nullptr) tail_ = nullptr;
    return state;
  }

 private:
  OperationState* head_ = nullptr;
  OperationState* tail_ = nullptr;
};

class Clock {
 public:
  virtual ~Clock() = default;
  virtual std::string_view name() const = 0;  // "real", "emulated", "simulated"
  // Nanoseconds: CLOCK_MONOTONIC, or virtual time from 0.
  virtual TimeNs now_ns() = 0;
  // Begins an operation; its state stays the caller's until it comes back from wait().
  virtual void start(OperationState* state) = 0;
  // Appends operations that have completed, with their times and outcome. If none has, reaches the
  // next completion: by waiting, at most `patience_ns` (it may come back with nothing), or by
  // jumping.
  virtual void wait(OperationQueue& completed, TimeNs patience_ns) = 0;
  // An eventfd that ends a wait early, for other threads; -1: nobody can, since none waits.
  virtual int wake_fd() const { return -1; }
};

}  // namespace sluice::runtime
