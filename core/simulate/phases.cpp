#include "core/simulate/phases.h"

#include <algorithm>

#include "core/train/training_step.h"

namespace sluice::simulate {
namespace {

double seconds_of(TimeNs dur_ns) { return static_cast<double>(dur_ns) / 1e9; }

}  // namespace

const char* phase_name(Phase phase) {
  switch (phase) {
    case Phase::forward:
      return "forward";
    case Phase::backward:
      return "backward";
    case Phase::update:
      break;
  }
  return "update";
}

ByPhase phase_seconds(const train::StepOutcome& outcome) {
  return {seconds_of(outcome.forward_ns()), seconds_of(outcome.backward_ns()),
          seconds_of(outcome.update_ns())};
}

Stretches::Stretches(const train::StepOutcome& outcome, bool parameters_are_up,
                     TimeNs parameters_up_ns)
    : begins_ns_{outcome.start_ns, std::max(outcome.start_ns, parameters_up_ns),
                 outcome.forward_end_ns, outcome.backward_end_ns},
      current_(outcome.backward_end_ns > 0  ? 3
               : outcome.forward_end_ns > 0 ? 2
               : parameters_are_up          ? 1
                                            : 0) {}

ByPhase Stretches::parts(TimeNs from, TimeNs to) const {
  ByPhase parts{};
  const auto part_of = [&parts](std::size_t stretch) -> double& {
    return parts[static_cast<std::size_t>(kPhases[stretch])];
  };
  if (from >= to) {
    part_of(current_) = 1;
    return parts;
  }
  TimeNs end = to;
  for (std::size_t s = current_ + 1; s-- > 0 && from < end;) {
    const TimeNs begin = std::clamp(from, begins_ns_[s], end);
    part_of(s) += static_cast<double>(end - begin) / static_cast<double>(to - from);
    end = std::min(end, begins_ns_[s]);
  }
  return parts;
}

}  // namespace sluice::simulate
