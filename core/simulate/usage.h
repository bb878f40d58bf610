#pragma once
// Adds up what links move and engines do in simulated steps, phase by phase.
//
// Thread contract: the schedule's thread.

#include <array>
#include <cstdint>
#include <vector>

#include "core/platform/platform.h"
#include "core/runtime/operation.h"
#include "core/simulate/simulated_step.h"

namespace sluice::offload {
class Offload;
}
namespace sluice::train {
struct StepOutcome;
}

namespace sluice::simulate {

class UsageSink final : public runtime::OperationSink {
 public:
  // All outlive the sink. `outcome` is that of the step that runs, filled in as it goes.
  UsageSink(const platform::Platform& platform, const offload::Offload& offload,
            const train::StepOutcome& outcome);

  void on_submit(const runtime::OperationState& state) override;
  void on_finish(const runtime::OperationState& state) override;
  void on_activation_wait(const stages::ActivationWaited& waited) override;
  // When the step's outcome is complete.
  void on_step_end();

  // The mean of the steps so far; there is at least one.
  SimulatedStep mean_step() const;

 private:
  struct LinkBytes {
    std::array<std::int64_t, 2> ended{};  // of operations that ended then
    std::array<double, 2> moved{};        // by when they were under way
  };
  using LinkPhases = std::array<LinkBytes, kPhaseCount>;

  Stretches stretches() const;
  LinkUse mean_use(const platform::Link& link, const LinkPhases& phases,
                   const ByPhase& phase_seconds) const;

  const platform::Platform& platform_;
  const offload::Offload& offload_;
  const train::StepOutcome& outcome_;
  // Sums over all steps.
  std::vector<StepTimes> steps_;
  ByPhase seconds_{};
  double total_seconds_ = 0;
  std::vector<LinkPhases> links_;
  std::vector<ByPhase> engines_;
  std::int64_t operation_count_ = 0;
  std::array<TimeNs, stages::kActivationWaitCount> activation_wait_ns_{};
};

}  // namespace sluice::simulate
