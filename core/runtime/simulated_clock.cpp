#include "base/check.h"
#include "core/runtime/clocks.h"

namespace sluice::runtime {
namespace {

// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
std::uint64_t next_random(std::uint64_t& state) {
  std::uint64_t z = (state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

}  // namespace

SimulatedClock::SimulatedClock(const platform::Platform& platform, const Disturbance& disturbance)
    : cost_(platform), disturbance_(disturbance), random_state_(disturbance.seed) {
  charged_.reserve(256);
}

void SimulatedClock::start(OperationState* state) {
  TimeNs delay_ns = 0;
  if (disturbance_.delay_max_ns > 0) {
    const auto bound = static_cast<std::uint64_t>(disturbance_.delay_max_ns) + 1;
    delay_ns = static_cast<TimeNs>(next_random(random_state_) % bound);
  }
  if (started_count_++ == disturbance_.failing_operation) {
    state->status =
        make_error(ErrorCode::io, "{} of subgroup {} failed, as the simulation was told",
                   stages::stage_name(state->operation.label.stage),
                   index_of(state->operation.label.subgroup));
  }
  cost_.start(state, now_ns_, delay_ns);
}

void SimulatedClock::wait(OperationQueue& completed, TimeNs /*patience_ns*/) {
  const TimeNs next_ns = cost_.next_completion_ns();
  CHECK_NE(next_ns, platform::FlowNetwork::kNever);  // the runtime waits only with work in flight
  now_ns_ = std::max(now_ns_, next_ns);
  charged_.clear();
  cost_.advance(now_ns_, charged_);
  for (const CostModel::Completion& charged : charged_) {
    charged.state->start_ns = charged.begin_ns;
    charged.state->end_ns = charged.at_ns;
    completed.push(charged.state);
  }
}

}  // namespace sluice::runtime
