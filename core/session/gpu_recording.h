#pragma once
// The GPU's work, recorded with a run that computes on one and records all (docs/recording.md).
//
// Thread contract: the schedule's thread; what region() returns is called from any.

#include <atomic>
#include <memory>

#include "core/model/launch_region.h"
#include "core/session/run_observer.h"
#include "core/settings/run_config.h"
#include "profiler/cupti/cupti_recording.h"

namespace sluice::session {

class GpuRecording final : public RunObserver {
 public:
  // To be called before the device is opened. Null where the run does not ask for it, and where it
  // is not to be had: then a warning says why.
  static std::unique_ptr<GpuRecording> start_if_asked(const settings::RunConfig& config,
                                                      record::Recorder& recorder);

  // Around each launch: its layer, and the step under way. Good as long as this object lives.
  model::LaunchRegion region();
  // From 0, as in the run database.
  void set_step(std::int64_t step) { step_.store(static_cast<std::int32_t>(step)); }
  void on_step(const StepReport& report) override { set_step(report.step); }

  const record::SideRecorder& side() const { return *recording_; }
  // Nothing is launched any more.
  Status stop() { return recording_->stop(); }

 private:
  explicit GpuRecording(std::unique_ptr<cupti::CuptiRecording> recording)
      : recording_(std::move(recording)) {}

  std::unique_ptr<cupti::CuptiRecording> recording_;
  std::atomic<std::int32_t> step_{0};
};

}  // namespace sluice::session
