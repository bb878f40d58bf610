#include "core/runtime/sync.h"

#include <algorithm>

namespace sluice::runtime {

void Event::set() {
  is_set_ = true;
  if (runtime_.failed()) return waiters_.clear();  // they are on their way, cancelled
  while (!waiters_.empty()) {
    Waiting* waiting = waiters_.pop();
    runtime_.remove_waiting(waiting);
    runtime_.make_ready(waiting->waiter);
  }
}

void Event::Awaiter::await_suspend(std::coroutine_handle<> waiter) {
  waiting_.waiter = waiter;
  event_.waiters_.push(&waiting_);
  event_.runtime_.add_waiting(&waiting_);
}

Status Event::Awaiter::await_resume() {
  if (waiting_.cancelled) {
    event_.waiters_.clear();  // all of them are cancelled
    return event_.runtime_.cancelled_error();
  }
  if (!event_.is_set_) return event_.runtime_.cancelled_error();
  return ok_status();
}

Pool::Pool(Runtime& runtime, std::int32_t count, DeviceId device)
    : runtime_(runtime), count_(count), device_(device) {
  CHECK_GT(count, 0);
  if (device != kNoDevice) runtime.watch_buffers(device);
  free_.reserve(static_cast<std::size_t>(count));
  for (std::int32_t index = count - 1; index >= 0; --index) free_.push_back(index);
}

std::int32_t Pool::take_lowest() {
  const std::int32_t index = free_.back();
  free_.pop_back();
  if (device_ != kNoDevice) runtime_.change_buffers(device_, 1);
  return index;
}

void Pool::give_back(std::int32_t index) {
  CHECK(std::find(free_.begin(), free_.end(), index) == free_.end());
  if (!waiters_.empty() && !runtime_.failed()) {
    Waiting* waiting = waiters_.pop();
    runtime_.remove_waiting(waiting);
    waiting->granted = index;
    runtime_.make_ready(waiting->waiter);
    return;
  }
  free_.insert(std::upper_bound(free_.begin(), free_.end(), index, std::greater<>()), index);
  if (device_ != kNoDevice) runtime_.change_buffers(device_, -1);
}

bool Pool::Awaiter::await_ready() const {
  return pool_.runtime_.failed() || (!pool_.free_.empty() && pool_.waiters_.empty());
}

void Pool::Awaiter::await_suspend(std::coroutine_handle<> waiter) {
  suspended_ = true;
  waiting_.waiter = waiter;
  pool_.waiters_.push(&waiting_);
  pool_.runtime_.add_waiting(&waiting_);
}

Result<Pool::Lease> Pool::Awaiter::await_resume() {
  if (waiting_.cancelled) pool_.waiters_.clear();
  if (waiting_.granted >= 0) return Lease(&pool_, waiting_.granted);
  if (suspended_ || pool_.runtime_.failed()) return pool_.runtime_.cancelled_error();
  return Lease(&pool_, pool_.take_lowest());
}

void TaskGroup::spawn(Task<Status> task) {
  running_count_ += 1;
  run(std::move(task));
}

detail::Detached TaskGroup::run(Task<Status> task) {
  Status status = co_await task;
  finish(std::move(status));
}

void TaskGroup::finish(Status status) {
  if (!status.ok()) {
    if (first_failure_.ok()) first_failure_ = status;
    runtime_.fail(status.error());
  }
  running_count_ -= 1;
  if (running_count_ == 0 && joiner_) runtime_.make_ready(std::exchange(joiner_, nullptr));
}

Status TaskGroup::Joiner::await_resume() {
  return std::exchange(group_.first_failure_, ok_status());
}

}  // namespace sluice::runtime
