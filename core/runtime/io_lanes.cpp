#include "core/runtime/io_lanes.h"

#include <algorithm>

#include "base/check.h"
#include "base/clock.h"

namespace sluice::runtime {

IoLanes::IoLanes(std::unique_ptr<io::IoEngine> engine, const Options& options)
    : engine_(std::move(engine)), completions_(128) {
  lanes_.reserve(64);
  requests_.reserve(256);
  set_options(options);
}

void IoLanes::set_options(const Options& options) {
  CHECK_GT(options.io_bytes, 0);
  CHECK_EQ(options.io_bytes % kPageBytes, 0);
  CHECK_GT(options.queue_depth, 0);
  CHECK(idle());
  options_ = options;
  lanes_.clear();
}

void IoLanes::start(OperationState* state) {
  state->start_ns = monotonic_now_ns();
  if (state->operation.work.data.empty()) {
    empty_transfers_.push(state);
    return;
  }
  lane_of(state->operation.work).waiting.push(state);
}

void IoLanes::collect(OperationQueue& done) {
  while (!empty_transfers_.empty()) {
    OperationState* state = empty_transfers_.pop();
    state->end_ns = monotonic_now_ns();
    done.push(state);
  }
  while (engine_->inflight_count() > 0) {
    const std::size_t count = engine_->reap(completions_, 0);
    for (std::size_t i = 0; i < count; ++i) {
      auto* state = reinterpret_cast<OperationState*>(completions_[i].user_data);
      lane_of(state->operation.work).inflight_count -= 1;
      state->inflight_requests -= 1;
      if (!completions_[i].status.ok() && state->status.ok()) {
        state->status = std::move(completions_[i].status);
      }
      completions_[i].status = ok_status();
      finish_if_complete(state, done);
    }
    if (count < completions_.size()) break;
  }
}

IoLanes::Lane& IoLanes::lane_of(const Work& work) {
  for (Lane& lane : lanes_) {
    if (lane.file == work.file && lane.direction == work.direction) return lane;
  }
  lanes_.push_back({work.file, work.direction, 0, {}});
  return lanes_.back();
}

void IoLanes::issue() {
  for (Lane& lane : lanes_) issue_from(lane);
  flush_requests();
}

void IoLanes::issue_from(Lane& lane) {
  while (!lane.waiting.empty() && lane.inflight_count < options_.queue_depth &&
         engine_->inflight_count() + requests_.size() < engine_->queue_depth()) {
    OperationState* state = lane.waiting.front();
    const Work& work = state->operation.work;
    const auto size_bytes = static_cast<std::int64_t>(work.data.size());
    // After an error the rest is not asked for: what is in flight is waited for, then it fails.
    const std::int64_t left = state->status.ok() ? size_bytes - state->issued_bytes : 0;
    const std::int64_t length = std::min(left, options_.io_bytes);
    if (length > 0) {
      requests_.push_back({work.file, work.offset_bytes + state->issued_bytes,
                           work.data.subspan(static_cast<std::size_t>(state->issued_bytes),
                                             static_cast<std::size_t>(length)),
                           work.direction, reinterpret_cast<std::uint64_t>(state)});
      state->issued_bytes += length;
      state->inflight_requests += 1;
      lane.inflight_count += 1;
    }
    if (length == 0 || state->issued_bytes == size_bytes) {
      state->issued_bytes = size_bytes;
      lane.waiting.pop();
    }
  }
}

void IoLanes::flush_requests() {
  if (requests_.empty()) return;
  const std::size_t taken = engine_->submit(requests_);
  CHECK_EQ(taken, requests_.size());  // issue_from() left room for all of them
  requests_.clear();
}

void IoLanes::finish_if_complete(OperationState* state, OperationQueue& done) {
  if (state->inflight_requests > 0) return;
  const auto size_bytes = static_cast<std::int64_t>(state->operation.work.data.size());
  if (state->issued_bytes < size_bytes) {
    // Between two issues of one transfer, or failed before all of it was issued. In the second case
    // it is at the front of its lane, since a lane issues its transfers one after the other.
    if (state->status.ok()) return;
    Lane& lane = lane_of(state->operation.work);
    CHECK_EQ(lane.waiting.front(), state);
    lane.waiting.pop();
  }
  state->end_ns = monotonic_now_ns();
  done.push(state);
}

}  // namespace sluice::runtime
