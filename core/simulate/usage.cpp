#include "core/simulate/usage.h"

#include <algorithm>
#include <utility>

#include "core/offload/offload.h"
#include "core/offload/parameter_arrival.h"
#include "core/train/training_step.h"

namespace sluice::simulate {
namespace {

double busy_seconds(const platform::Link& link, const std::array<double, 2>& size_bytes) {
  const double read = size_bytes[0] / link.read_bytes_per_s;
  const double write = size_bytes[1] / link.write_bytes_per_s;
  return link.duplex == platform::Duplex::half ? read + write : std::max(read, write);
}

}  // namespace

UsageSink::UsageSink(const platform::Platform& platform, const offload::Offload& offload,
                     const train::StepOutcome& outcome)
    : platform_(platform),
      offload_(offload),
      outcome_(outcome),
      links_(platform.links.size()),
      engines_(platform.engines.size()) {}

Stretches UsageSink::stretches() const {
  const offload::ParameterArrival& arrival = offload_.arrival();
  return {outcome_, arrival.is_complete(), arrival.completed_ns()};
}

void UsageSink::on_submit(const runtime::OperationState& /*state*/) { operation_count_ += 1; }

void UsageSink::on_finish(const runtime::OperationState& state) {
  const runtime::Operation& operation = state.operation;
  const Stretches stretches = this->stretches();
  const auto direction = static_cast<std::size_t>(operation.cost.direction);
  const ByPhase parts = stretches.parts(state.start_ns, state.end_ns);
  for (const platform::LinkId link : operation.cost.route) {
    LinkPhases& phases = links_[static_cast<std::size_t>(platform::index_of(link))];
    phases[static_cast<std::size_t>(stretches.now())].ended[direction] +=
        operation.label.size_bytes;
    for (std::size_t p = 0; p < kPhaseCount; ++p) {
      phases[p].moved[direction] += parts[p] * static_cast<double>(operation.label.size_bytes);
    }
  }
  const std::int32_t engine = platform::index_of(operation.cost.engine);
  if (engine < 0) return;
  const TimeNs dur_ns = operation.cost.engine_dur_ns;
  const std::int32_t compute_units = platform_.engine(operation.cost.engine).compute_units;
  const ByPhase kernel = stretches.parts(state.end_ns - dur_ns, state.end_ns);
  for (std::size_t p = 0; p < kPhaseCount; ++p) {
    engines_[static_cast<std::size_t>(engine)][p] +=
        kernel[p] * static_cast<double>(dur_ns) / 1e9 / compute_units;
  }
}

void UsageSink::on_activation_wait(const stages::ActivationWaited& waited) {
  activation_wait_ns_[index_of(waited.why)] += waited.to_ns - waited.from_ns;
}

void UsageSink::on_step_end() {
  const ByPhase seconds = phase_seconds(outcome_);
  for (std::size_t p = 0; p < kPhaseCount; ++p) seconds_[p] += seconds[p];
  total_seconds_ += static_cast<double>(outcome_.total_ns()) / 1e9;
  steps_.push_back({outcome_.start_ns, outcome_.end_ns});
}

LinkUse UsageSink::mean_use(const platform::Link& link, const LinkPhases& phases,
                            const ByPhase& phase_seconds) const {
  const auto count = static_cast<double>(steps_.size());
  LinkUse use{link.name, {}, {}};
  for (std::size_t phase = 0; phase < kPhaseCount; ++phase) {
    const LinkBytes& bytes = phases[phase];
    for (std::size_t d = 0; d < bytes.ended.size(); ++d) {
      use.size_bytes[phase][d] = bytes.ended[d] / std::ssize(steps_);
    }
    // An operation's bytes are spread evenly over its time, which is not quite how they moved.
    use.busy_seconds[phase] =
        std::min(phase_seconds[phase], busy_seconds(link, bytes.moved) / count);
  }
  return use;
}

SimulatedStep UsageSink::mean_step() const {
  const auto count = static_cast<double>(steps_.size());
  SimulatedStep step;
  step.steps = steps_;
  for (std::size_t phase = 0; phase < kPhaseCount; ++phase) {
    step.seconds[phase] = seconds_[phase] / count;
  }
  step.total_seconds = total_seconds_ / count;
  step.operation_count = operation_count_ / std::ssize(steps_);
  for (std::size_t why = 0; why < stages::kActivationWaitCount; ++why) {
    step.activation_wait_seconds[why] = static_cast<double>(activation_wait_ns_[why]) / 1e9 / count;
  }
  for (std::size_t i = 0; i < links_.size(); ++i) {
    step.links.push_back(mean_use(platform_.links[i], links_[i], step.seconds));
  }
  for (std::size_t i = 0; i < engines_.size(); ++i) {
    EngineUse use{platform_.engines[i].name, engines_[i]};
    for (double& seconds : use.busy_seconds) seconds /= count;
    step.engines.push_back(std::move(use));
  }
  return step;
}

}  // namespace sluice::simulate
