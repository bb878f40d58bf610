#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/clock.h"
#include "core/runtime/clocks.h"

namespace sluice::runtime {
namespace {

// A sleeping thread is woken some tens of microseconds late; the last stretch is polled instead.
constexpr TimeNs kPollNs = 80'000;

}  // namespace

EmulatedClock::EmulatedClock(std::unique_ptr<WorkExecutor> executor,
                             const platform::Platform& platform, double time_scale)
    : executor_(std::move(executor)),
      cost_(platform),
      time_scale_(time_scale),
      epoch_ns_(monotonic_now_ns()) {
  CHECK_GT(time_scale, 0.0);
  charged_.reserve(256);
}

TimeNs EmulatedClock::now_ns() { return monotonic_now_ns(); }

TimeNs EmulatedClock::model_ns(TimeNs wall) const {
  return static_cast<TimeNs>(static_cast<double>(wall - epoch_ns_) / time_scale_);
}

TimeNs EmulatedClock::wall_ns(TimeNs model) const {
  return epoch_ns_ + static_cast<TimeNs>(std::ceil(static_cast<double>(model) * time_scale_));
}

void EmulatedClock::start(OperationState* state) {
  cost_.start(state, model_ns(monotonic_now_ns()), 0);
  executor_->start(state);
}

bool EmulatedClock::collect(OperationQueue& completed) {
  executor_->collect(worked_);
  const TimeNs now = monotonic_now_ns();
  while (!worked_.empty()) {
    OperationState* state = worked_.pop();
    state->work_done = true;
    if (state->cost_done) complete(state, now, completed);
  }
  charged_.clear();
  cost_.advance(model_ns(now), charged_);
  for (const CostModel::Completion& charged : charged_) {
    charged.state->cost_done = true;
    charged.state->modelled_end_ns = wall_ns(charged.at_ns);
    if (charged.state->work_done) complete(charged.state, now, completed);
  }
  return !completed.empty();
}

void EmulatedClock::complete(OperationState* state, TimeNs now_ns, OperationQueue& completed) {
  state->start_ns = std::min(state->start_ns, state->modelled_end_ns);
  state->end_ns = std::max(now_ns, state->modelled_end_ns);
  completed.push(state);
  // What costs nothing on the platform takes what it takes here; the model says nothing of it.
  const Cost& cost = state->operation.cost;
  if (cost.route.empty() && index_of(cost.engine) < 0) return;
  const TimeNs late_ns = state->end_ns - state->modelled_end_ns;
  const TimeNs modelled_dur_ns = state->modelled_end_ns - state->submit_ns;
  report_.operation_count += 1;
  if (late_ns > 50'000 && late_ns * 100 > modelled_dur_ns) report_.late_count += 1;
  if (late_ns > report_.worst_late_ns) {
    report_.worst_late_ns = late_ns;
    report_.worst_stage = stage_name(state->operation.label.stage);
  }
}

void EmulatedClock::wait(OperationQueue& completed, TimeNs patience_ns) {
  const TimeNs give_up_ns = monotonic_now_ns() + patience_ns;
  while (!collect(completed)) {
    const TimeNs now = monotonic_now_ns();
    if (now >= give_up_ns) return;
    const TimeNs next_model_ns = cost_.next_completion_ns();
    TimeNs until_ns = give_up_ns;
    if (next_model_ns != platform::FlowNetwork::kNever) {
      until_ns = std::min(until_ns, wall_ns(next_model_ns) - kPollNs);
    }
    if (until_ns > now) executor_->sleep(until_ns - now);
  }
}

}  // namespace sluice::runtime
