#pragma once
// A call under way: what was asked for and who is told of its end. All of a communicator's are
// taken when it is made, so that a call takes no memory.
//
// Thread contract: CallSlots any thread; a CallState belongs to who holds it.

#include <array>
#include <cstdint>
#include <variant>

#include "base/mutex.h"
#include "core/collective/call.h"
#include "core/collective/pending.h"
#include "core/runtime/completion.h"

namespace sluice::collective::detail {

// Who is told: nobody, a schedule, or a thread that waits.
using Notice = std::variant<std::monostate, runtime::Completion, Pending*>;

inline void tell(const Notice& notice, Status outcome) {
  if (const auto* completion = std::get_if<runtime::Completion>(&notice)) {
    completion->note(std::move(outcome));
  } else if (auto* const* pending = std::get_if<Pending*>(&notice)) {
    (*pending)->note(std::move(outcome));
  }
}

struct CallState {
  Call call;
  Notice notice;
  std::int64_t number = 0;  // of its group, from 1
  CallState* next = nullptr;
};

// First in, first out, through CallState::next.
class CallQueue {
 public:
  bool is_empty() const { return head_ == nullptr; }
  void push(CallState* state) {
    state->next = nullptr;
    (tail_ == nullptr ? head_ : tail_->next) = state;
    tail_ = state;
  }
  CallState* pop() {
    CallState* state = head_;
    head_ = state->next;
    if (head_ == nullptr) tail_ = nullptr;
    return state;
  }

 private:
  CallState* head_ = nullptr;
  CallState* tail_ = nullptr;
};

class CallSlots {
 public:
  // Twice what a schedule may have under way elsewhere (CompletionBoard::kPlaceCount).
  static constexpr std::size_t kCount = 128;
  CallSlots() {
    for (CallState& state : states_) free_.push(&state);
  }
  // Null: all are taken.
  CallState* try_acquire() {
    MutexLock lock(mutex_);
    return free_.is_empty() ? nullptr : free_.pop();
  }
  void release(CallState* state) {
    state->notice = std::monostate{};
    MutexLock lock(mutex_);
    free_.push(state);
  }

 private:
  Mutex mutex_;
  std::array<CallState, kCount> states_;
  CallQueue free_ GUARDED_BY(mutex_);
};

}  // namespace sluice::collective::detail
