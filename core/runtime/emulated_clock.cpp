#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/clock.h"
#include "base/saturating.h"
#include "core/runtime/clocks.h"

namespace sluice::runtime {
namespace {

// With nothing under way, a longer pause than this was not the schedule's but its user's.
constexpr TimeNs kPauseNs = 1'000'000'000;

bool is_kernel(const Cost& cost) { return cost.route.empty() && index_of(cost.engine) >= 0; }

}  // namespace

EmulatedClock::EmulatedClock(std::unique_ptr<WorkExecutor> executor,
                             const platform::Platform& platform, double time_scale)
    : executor_(std::move(executor)),
      cost_(platform),
      time_scale_(time_scale),
      epoch_ns_(monotonic_now_ns()) {
  CHECK_GT(time_scale, 0.0);
  charged_.reserve(256);
  for (const platform::Engine& engine : platform.engines) {
    auto& units = late_kernels_.emplace_back(static_cast<std::size_t>(engine.compute_units));
    for (auto& kernels : units) kernels.reserve(64);
    kernel_end_ns_.emplace_back(units.size(), TimeNs{0});
  }
}

TimeNs EmulatedClock::model_ns(TimeNs wall) const {
  return std::min(saturating_whole(static_cast<double>(wall - epoch_ns_) / time_scale_),
                  platform::FlowNetwork::kLatest);
}

TimeNs EmulatedClock::wall_ns(TimeNs model) const {
  return saturating_sum(epoch_ns_,
                        saturating_whole(std::ceil(static_cast<double>(model) * time_scale_)));
}

TimeNs EmulatedClock::now_ns() {
  const TimeNs wall = monotonic_now_ns();
  if (inflight_count_ == 0 && wall - wall_ns(model_now_ns_) > kPauseNs) {
    model_now_ns_ = model_ns(wall);
  }
  return wall_ns(model_now_ns_);
}

void EmulatedClock::start(OperationState* state) {
  inflight_count_ += 1;
  cost_.start(state, model_now_ns_, 0);
  executor_->start(state);
}

bool EmulatedClock::collect(OperationQueue& completed) {
  executor_->collect(worked_);
  const TimeNs wall = monotonic_now_ns();
  while (!worked_.empty()) {
    OperationState* state = worked_.pop();
    state->work_done = true;
    if (state->cost_done && !is_kernel(state->operation.cost)) late_.push(state);
  }
  if (collect_charged(wall, completed)) return true;
  take_late();
  if (late_.empty()) return false;
  // They end at an instant of the model, not at `wall`: what they set off does not begin before.
  model_now_ns_ = std::max(model_now_ns_, model_ns(wall));
  while (!late_.empty()) complete(late_.pop(), wall_ns(model_now_ns_), completed);
  return true;
}

// One instant of the model after the other, so that what an operation's end sets off is charged
// from that end on, however long this thread took to come to it.
bool EmulatedClock::collect_charged(TimeNs wall, OperationQueue& completed) {
  while (completed.empty()) {
    const TimeNs next_ns = cost_.next_completion_ns();
    if (next_ns == platform::FlowNetwork::kNever || wall_ns(next_ns) > wall) return false;
    model_now_ns_ = std::max(model_now_ns_, next_ns);
    charged_.clear();
    cost_.advance(model_now_ns_, charged_);
    for (const CostModel::Completion& charged : charged_) {
      charged.state->cost_done = true;
      charged.state->modelled_end_ns = wall_ns(charged.at_ns);
      charged.state->modelled_start_ns = wall_ns(charged.begin_ns);
      if (is_behind_late(charged)) continue;
      if (charged.state->work_done) {
        complete(charged.state, charged.state->modelled_end_ns, completed);
      }
    }
  }
  return true;
}

bool EmulatedClock::is_behind_late(const CostModel::Completion& charged) {
  const Cost& cost = charged.state->operation.cost;
  if (!is_kernel(cost)) return false;
  auto& kernels = late_kernels_[cost.engine][static_cast<std::size_t>(charged.unit)];
  if (kernels.empty() && charged.state->work_done) return false;
  kernels.push_back(charged.state);
  return true;
}

void EmulatedClock::take_late() {
  const auto is_done = [](const OperationState* state) { return state->work_done; };
  for (auto& units : late_kernels_) {
    for (std::vector<OperationState*>& kernels : units) {
      const auto first_undone = std::ranges::find_if_not(kernels, is_done);
      std::for_each(kernels.begin(), first_undone, [this](auto* state) { late_.push(state); });
      kernels.erase(kernels.begin(), first_undone);
    }
  }
}

void EmulatedClock::complete(OperationState* state, TimeNs end_ns, OperationQueue& completed) {
  inflight_count_ -= 1;
  state->end_ns = end_ns;
  completed.push(state);
  // Work that costs nothing on the platform takes its time here; the model says nothing of it.
  const Cost& cost = state->operation.cost;
  state->start_ns = std::min(state->start_ns, state->modelled_end_ns);
  if (cost.route.empty() && !is_kernel(cost)) return;
  state->start_ns = state->modelled_start_ns;
  const TimeNs late_ns = end_ns - state->modelled_end_ns;
  const TimeNs modelled_dur_ns = state->modelled_end_ns - state->submit_ns;
  EmulationReport& report = reports_[index_of(state->operation.label.stage)];
  const TimeNs by_itself_ns = late_by_itself(*state);
  report.operation_count += 1;
  report.modelled_ns += state->modelled_end_ns - state->modelled_start_ns;
  report.worst_late_ns = std::max(report.worst_late_ns, late_ns);
  // Behind the last instant that can be counted nothing is on time: all of it is at that one.
  const bool is_countable = model_now_ns_ < platform::FlowNetwork::kLatest;
  const bool is_late = late_ns > 50'000 && late_ns > modelled_dur_ns / 100;
  if (!is_late && is_countable) return;
  report.late_count += 1;
  report.late_ns += by_itself_ns;
}

TimeNs EmulatedClock::late_by_itself(const OperationState& state) {
  const TimeNs late_ns = state.end_ns - state.modelled_end_ns;
  const Cost& cost = state.operation.cost;
  if (!is_kernel(cost)) return late_ns;
  const auto unit = static_cast<std::size_t>(std::max(0, state.unit));
  std::vector<TimeNs>& ends = kernel_end_ns_[cost.engine];
  if (unit >= ends.size()) return late_ns;  // work elsewhere has more units than the model
  const TimeNs begin_ns = std::max(state.modelled_start_ns, ends[unit]);
  ends[unit] = state.end_ns;
  const TimeNs modelled_ns = state.modelled_end_ns - state.modelled_start_ns;
  return std::clamp<TimeNs>(state.end_ns - begin_ns - modelled_ns, 0, late_ns);
}

EmulationReport EmulatedClock::report() const {
  EmulationReport all;
  for (const EmulationReport& stage : reports_) {
    all.operation_count += stage.operation_count;
    all.late_count += stage.late_count;
    all.worst_late_ns = std::max(all.worst_late_ns, stage.worst_late_ns);
    all.modelled_ns += stage.modelled_ns;
    all.late_ns += stage.late_ns;
  }
  return all;
}

void EmulatedClock::wait(OperationQueue& completed, TimeNs patience_ns) {
  const TimeNs give_up_ns = monotonic_now_ns() + patience_ns;
  while (!collect(completed)) {
    const TimeNs now = monotonic_now_ns();
    if (now >= give_up_ns) return;
    const TimeNs next_model_ns = cost_.next_completion_ns();
    TimeNs until_ns = give_up_ns;
    if (next_model_ns != platform::FlowNetwork::kNever) {
      until_ns = std::min(until_ns, wall_ns(next_model_ns));
    }
    // Work may have ended before its modelled end, or a note has come from outside.
    if (until_ns > now && executor_->sleep(until_ns - now)) {
      collect(completed);
      return;
    }
  }
}

}  // namespace sluice::runtime
