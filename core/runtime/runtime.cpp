#include "core/runtime/runtime.h"

#include <algorithm>

#include "base/clock.h"
#include "base/log.h"
#include "core/runtime/label_text.h"

namespace sluice::runtime {
namespace {

// After so long without any completion a waiting run says what it waits for, and goes on waiting.
constexpr TimeNs kPatienceNs = 30'000'000'000;
// The same where another thread is waited for, whose program may compute for minutes.
constexpr TimeNs kOutsidePatienceNs = 600'000'000'000;

// The drive's error names the file; whose bytes they are is known here.
Error error_of(const OperationState& state) {
  const OperationLabel& label = state.operation.label;
  const bool is_of_layer = label.layer != kNoLayer && label.place_bytes >= 0;
  return is_of_layer ? state.status.error().with_context(label_text(label)) : state.status.error();
}

}  // namespace

Runtime::Runtime(std::unique_ptr<Clock> clock) : clock_(std::move(clock)) {
  ready_.reserve(1024);
  resuming_.reserve(1024);
}

Runtime::~Runtime() { CHECK_EQ(inflight_count_, 0); }

void Runtime::add_sink(OperationSink* sink) {
  for (const OperationState* state = inflight_; state != nullptr; state = state->inflight_next) {
    sink->on_found(*state);
  }
  for (const DeviceId device : ids_of(buffers_in_use_)) {
    sink->on_buffers(device, buffers_in_use_[device], now_ns());
  }
  sinks_.push_back(sink);
}

void Runtime::watch_buffers(DeviceId device) {
  const std::int32_t count = index_of(device) + 1;
  if (buffers_in_use_.count() < count) buffers_in_use_.resize(count);
}

TimeNs Runtime::tell_activation_wait(stages::ActivationWait why, LayerId layer, TimeNs from_ns) {
  const stages::ActivationWaited waited{why, layer, step_, from_ns, now_ns()};
  const TimeNs dur_ns = waited.to_ns - waited.from_ns;
  if (dur_ns <= 0) return 0;
  for (OperationSink* sink : sinks_) sink->on_activation_wait(waited);
  return dur_ns;
}

void Runtime::tell_activation_bytes(stages::ActivationTier tier, std::int64_t size_bytes) {
  const TimeNs now = now_ns();
  for (OperationSink* sink : sinks_) sink->on_activation_bytes(tier, size_bytes, now);
}

void Runtime::change_buffers(DeviceId device, std::int32_t change) {
  std::int32_t& in_use = buffers_in_use_[device];
  in_use += change;
  const TimeNs now = now_ns();
  for (OperationSink* sink : sinks_) sink->on_buffers(device, in_use, now);
}

detail::Detached Runtime::run_root(Task<Status> root, Status* result, bool* done) {
  *result = co_await root;
  *done = true;
}

Status Runtime::run(Task<Status> root) {
  Status result;
  bool done = false;
  run_root(std::move(root), &result, &done);
  while (true) {
    resume_ready();
    if (done) break;
    if (poll_outside()) continue;
    if (inflight_count_ > 0 || waits_for_outside()) {
      wait_for_completions();
    } else {
      const std::string waiting = describe_waiting();
      CHECK(!failed_);  // cancelled waiters must all have ended by now
      fail(make_error(ErrorCode::internal, "the schedule is stuck, please report this: {}",
                      waiting));
    }
  }
  if (failed_) return failure_;
  return result;
}

void Runtime::resume_ready() {
  while (!ready_.empty()) {
    std::swap(ready_, resuming_);
    for (const std::coroutine_handle<> handle : resuming_) handle.resume();
    resuming_.clear();
  }
}

Result<Waker> Runtime::make_waker() {
  if (clock_->wake_fd() >= 0) return Waker::make(clock_->wake_fd());
  return make_error(ErrorCode::unsupported, "nothing comes from outside in {} time",
                    clock_->name());
}

bool Runtime::poll_outside() {
  bool has_come = false;
  for (OutsideSource* source : outside_) has_come = source->poll() || has_come;
  return has_come;
}

bool Runtime::waits_for_outside() const {
  return std::ranges::any_of(outside_, &OutsideSource::is_waited_for);
}

// Or for a note from outside.
void Runtime::wait_for_completions() {
  const TimeNs start_ns = monotonic_now_ns();
  const TimeNs patience_ns = inflight_count_ > 0 ? kPatienceNs : kOutsidePatienceNs;
  TimeNs next_warning_ns = start_ns + patience_ns;
  while (true) {
    clock_->wait(completed_, patience_ns);  // may return early with nothing
    if (!completed_.empty() || poll_outside()) break;
    const TimeNs now_ns = monotonic_now_ns();
    if (now_ns < next_warning_ns) continue;
    warn_of_long_wait(now_ns - start_ns);
    next_warning_ns = now_ns + patience_ns;
  }
  while (!completed_.empty()) finish(completed_.pop());
}

void Runtime::start(OperationState* state) {
  CHECK(!failed_);
  state->step = state->operation.label.step >= 0 ? state->operation.label.step : step_;
  state->submit_ns = state->start_ns = clock_->now_ns();
  state->inflight_next = inflight_;
  if (inflight_ != nullptr) inflight_->inflight_previous = state;
  inflight_ = state;
  inflight_count_ += 1;
  for (OperationSink* sink : sinks_) sink->on_submit(*state);
  clock_->start(state);
}

void Runtime::finish(OperationState* state) {
  if (state->inflight_previous != nullptr) {
    state->inflight_previous->inflight_next = state->inflight_next;
  } else {
    inflight_ = state->inflight_next;
  }
  if (state->inflight_next != nullptr) {
    state->inflight_next->inflight_previous = state->inflight_previous;
  }
  inflight_count_ -= 1;
  for (OperationSink* sink : sinks_) sink->on_finish(*state);
  if (!state->status.ok()) fail(error_of(*state));
  Arrival* arrival = state->arrival;  // `state` may be gone once its waiter is resumed
  arrival->pending_count -= 1;
  if (arrival->pending_count == 0) make_ready(arrival->waiter);
}

void Runtime::fail(Error error) {
  if (failed_) return;
  failed_ = true;
  failure_ = std::move(error);
  for (Waiting* waiting = waiting_; waiting != nullptr; waiting = waiting->next) {
    waiting->cancelled = true;
    make_ready(waiting->waiter);
  }
  // Their queues are not walked again: whoever comes to one after a failure empties it.
  waiting_ = nullptr;
}

void Runtime::add_waiting(Waiting* waiting) {
  waiting->previous = nullptr;
  waiting->next = waiting_;
  if (waiting_ != nullptr) waiting_->previous = waiting;
  waiting_ = waiting;
}

void Runtime::remove_waiting(Waiting* waiting) {
  (waiting->previous != nullptr ? waiting->previous->next : waiting_) = waiting->next;
  if (waiting->next != nullptr) waiting->next->previous = waiting->previous;
}

Error Runtime::cancelled_error() const {
  return Error(ErrorCode::cancelled, "stopped because of an earlier failure");
}

std::string Runtime::describe_waiting() const {
  std::string text;
  for (const Waiting* waiting = waiting_; waiting != nullptr; waiting = waiting->next) {
    text +=
        fmt::format("{}the task{} waits for {}", text.empty() ? "" : "; ",
                    owner_text(waiting->device, waiting->subgroup, waiting->layer), waiting->what);
  }
  return text.empty() ? "nobody waits for anything" : text;
}

void Runtime::warn_of_long_wait(TimeNs waited_ns) const {
  if (inflight_ == nullptr) {
    return log_warning(
        fmt::format("nothing has come for {}: {}", format_duration(waited_ns), describe_waiting()));
  }
  std::string text;
  for (const OperationState* state = inflight_; state != nullptr; state = state->inflight_next) {
    text += (text.empty() ? "" : ", ") + label_text(state->operation.label);
  }
  log_warning(
      fmt::format("nothing has completed for {}; in flight: {}", format_duration(waited_ns), text));
}

}  // namespace sluice::runtime
