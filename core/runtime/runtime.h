#pragma once
// The scheduler: runs coroutines on one owner thread and completes their operations under a clock.
//
// Awaiting an operation is the only way to move a byte or start a kernel, so every one passes here
// and each sink (recorder, byte counters, checkers) is told of it: nothing moves unrecorded.
//
// Failure: the first operation that fails stops the schedule. From then on nothing new is started,
// whoever waits is woken with ErrorCode::cancelled, what is in flight is waited for (it owns
// buffers), and run() returns the first failure.
//
// Stuck: if nothing is ready and nothing is in flight while somebody waits, and nobody waits for
// another thread (outside.h), that is a bug of the schedule; run() fails with a report of who waits
// for what instead of hanging.
//
// Thread contract: everything on the thread that made it.

#include <array>
#include <coroutine>
#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/id_vector.h"
#include "core/runtime/clock.h"
#include "core/runtime/outside.h"
#include "core/runtime/task.h"

namespace sluice::runtime {

// The operations of one co_await: when the last has completed, the waiter is resumed.
struct Arrival {
  std::coroutine_handle<> waiter;
  std::int32_t pending_count = 0;
};

// Somebody who waits for something other than an operation; in one WaitQueue and in the runtime's
// list of all of them. Lives in the frame of the one who waits.
struct Waiting {
  const char* what = "";  // "a free buffer set of the device"
  DeviceId device = kNoDevice;
  SubgroupId subgroup = kNoSubgroup;
  LayerId layer = kNoLayer;
  std::coroutine_handle<> waiter;
  bool cancelled = false;
  std::int32_t granted = -1;    // by a Pool
  Waiting* previous = nullptr;  // of the runtime's list
  Waiting* next = nullptr;
  Waiting* queue_next = nullptr;  // of the WaitQueue
};

class Runtime {
 public:
  explicit Runtime(std::unique_ptr<Clock> clock);
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  Clock& clock() { return *clock_; }
  TimeNs now_ns() { return clock_->now_ns(); }
  // Told at once of what is under way, and then of all that comes.
  void add_sink(OperationSink* sink);
  void set_step(std::int32_t step) { step_ = step; }

  // Runs a task to its end. After a failure the runtime stays failed: a run ends with it.
  Status run(Task<Status> root);

  // Stops the schedule as a failed operation does.
  void fail(Error error);
  bool failed() const { return failed_; }

  std::int64_t inflight_count() const { return inflight_count_; }

  // Sources of work from other threads; each takes itself out again.
  void add_outside(OutsideSource* source) { outside_.push_back(source); }
  void remove_outside(OutsideSource* source) { std::erase(outside_, source); }
  // Wakes this runtime where it sleeps. ErrorCode::unsupported in simulated time.
  Result<Waker> make_waker();

  // For the awaitables of this folder.
  void start(OperationState* state);
  void make_ready(std::coroutine_handle<> handle) { ready_.push_back(handle); }
  void add_waiting(Waiting* waiting);
  void remove_waiting(Waiting* waiting);
  Error cancelled_error() const;
  void watch_buffers(DeviceId device);
  void change_buffers(DeviceId device, std::int32_t change);

  // For the sinks; a wait of no length is none. How long it was.
  TimeNs tell_activation_wait(stages::ActivationWait why, LayerId layer, TimeNs from_ns);
  void tell_activation_bytes(stages::ActivationTier tier, std::int64_t size_bytes);

 private:
  detail::Detached run_root(Task<Status> root, Status* result, bool* done);
  void resume_ready();
  void finish(OperationState* state);
  bool poll_outside();
  bool waits_for_outside() const;
  void wait_for_completions();
  void warn_of_long_wait(TimeNs waited_ns) const;
  std::string describe_waiting() const;

  std::unique_ptr<Clock> clock_;
  std::vector<OperationSink*> sinks_;
  IdVector<DeviceId, std::int32_t> buffers_in_use_;
  std::vector<std::coroutine_handle<>> ready_;  // in order; resumed in batches
  std::vector<std::coroutine_handle<>> resuming_;
  OperationQueue completed_;
  OperationState* inflight_ = nullptr;
  std::int64_t inflight_count_ = 0;
  Waiting* waiting_ = nullptr;
  std::vector<OutsideSource*> outside_;
  std::int32_t step_ = -1;
  bool failed_ = false;
  Error failure_{ErrorCode::internal, ""};
};

// Awaits up to N operations that start together; the outcome is the first failure in order, or ok.
template <std::size_t N>
class OperationsAwaiter {
 public:
  explicit OperationsAwaiter(std::span<const Operation> operations) : count_(operations.size()) {
    CHECK_GE(count_, 1U);
    CHECK_LE(count_, N);
    for (std::size_t i = 0; i < count_; ++i) states_[i].operation = operations[i];
  }
  bool await_ready() const { return states_[0].operation.runtime->failed(); }
  void await_suspend(std::coroutine_handle<> waiter) {
    Runtime* runtime = states_[0].operation.runtime;
    arrival_ = {waiter, static_cast<std::int32_t>(count_)};
    for (std::size_t i = 0; i < count_; ++i) {
      states_[i].arrival = &arrival_;
      runtime->start(&states_[i]);
    }
  }
  Status await_resume() {
    if (!arrival_.waiter) return states_[0].operation.runtime->cancelled_error();
    for (std::size_t i = 0; i < count_; ++i) {
      if (!states_[i].status.ok()) return std::move(states_[i].status);
    }
    return ok_status();
  }

 private:
  std::size_t count_;
  Arrival arrival_;
  std::array<OperationState, N> states_;
};

// `Status status = co_await device.read(...);`
inline OperationsAwaiter<1> operator co_await(const Operation & operation) {
  return OperationsAwaiter<1>({&operation, 1});
}

// `Status status = co_await together<4>(operations);`
template <std::size_t N>
OperationsAwaiter<N> together(std::span<const Operation> operations) {
  return OperationsAwaiter<N>(operations);
}

}  // namespace sluice::runtime
