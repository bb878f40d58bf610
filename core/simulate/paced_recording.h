#pragma once
// Records a simulated step, and has the records written down before their ring is full: virtual
// time runs ahead of whoever writes.
//
// Thread contract: the schedule's thread.

#include <cstdint>

#include "core/offload/update_sites.h"
#include "core/runtime/recording.h"

namespace sluice::plan {
struct RunPlan;
}
namespace sluice::train {
struct StepOutcome;
}

namespace sluice::simulate {

struct SimulationRecording;

class PacedRecording final : public runtime::OperationSink {
 public:
  // Both outlive it.
  PacedRecording(const SimulationRecording& recording, const plan::RunPlan& plan);

  // Before the first operation: what the step's buffers take.
  Status begin(const offload::UpdateSites& sites, TimeNs now_ns);
  // The step is over, and nothing is recorded from here on. The first error of writing down.
  Status end(const train::StepOutcome& outcome);

  void on_submit(const runtime::OperationState& state) override;
  void on_found(const runtime::OperationState& state) override { sink_.on_found(state); }
  void on_buffers(DeviceId device, std::int32_t in_use, TimeNs now_ns) override;
  void on_activation_wait(const stages::ActivationWaited& waited) override;
  void on_activation_bytes(stages::ActivationTier tier, std::int64_t size_bytes,
                           TimeNs now_ns) override;
  void on_finish(const runtime::OperationState& state) override;

 private:
  const SimulationRecording& recording_;
  const plan::RunPlan& plan_;
  runtime::RecordingSink sink_;
  std::int64_t count_ = 0;
  bool is_over_ = false;
  Status status_;
};

}  // namespace sluice::simulate
