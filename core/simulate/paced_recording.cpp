#include "core/simulate/paced_recording.h"

#include <limits>

#include "core/plan/memory_counters.h"
#include "core/plan/run_plan.h"
#include "core/simulate/simulation.h"
#include "core/train/training_step.h"
#include "profiler/record/recorder.h"

namespace sluice::simulate {
namespace {

// With up to three flows and a dozen samples of counters each, a ring of records.
constexpr std::int64_t kRecordsBetween = 1 << 12;

record::StepRecord step_record(const plan::RunPlan& plan, const train::StepOutcome& outcome) {
  const settings::BatchConfig& batch = plan.config.batch;
  record::StepRecord step;
  step.ts = outcome.start_ns;
  step.dur = outcome.end_ns - outcome.start_ns;
  step.tokens = batch.batch * batch.sequence * batch.grad_accum_steps;
  step.loss = step.grad_norm = step.loss_scale = step.lr = std::numeric_limits<double>::quiet_NaN();
  return step;
}

}  // namespace

PacedRecording::PacedRecording(const SimulationRecording& recording, const plan::RunPlan& plan)
    : recording_(recording), plan_(plan), sink_(*recording.recorder, plan.platform) {}

Status PacedRecording::begin(const offload::UpdateSites& sites, TimeNs now_ns) {
  RETURN_IF_ERROR(recording_.begin());
  plan::record_memory(sink_, plan_, sites, now_ns);
  return ok_status();
}

Status PacedRecording::end(const train::StepOutcome& outcome) {
  RETURN_IF_ERROR(status_);
  sink_.record_step(step_record(plan_, outcome));
  is_over_ = true;
  return ok_status();
}

void PacedRecording::on_submit(const runtime::OperationState& state) {
  if (!is_over_) sink_.on_submit(state);
}

void PacedRecording::on_buffers(DeviceId device, std::int32_t in_use, TimeNs now_ns) {
  if (!is_over_) sink_.on_buffers(device, in_use, now_ns);
}

void PacedRecording::on_activation_wait(const stages::ActivationWaited& waited) {
  if (!is_over_) sink_.on_activation_wait(waited);
}

void PacedRecording::on_activation_bytes(stages::ActivationTier tier, std::int64_t size_bytes,
                                         TimeNs now_ns) {
  if (!is_over_) sink_.on_activation_bytes(tier, size_bytes, now_ns);
}

void PacedRecording::on_finish(const runtime::OperationState& state) {
  if (is_over_) return;
  sink_.on_finish(state);
  if (++count_ % kRecordsBetween == 0 && status_.ok()) status_ = recording_.write_down();
}

}  // namespace sluice::simulate
