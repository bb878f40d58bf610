#pragma once
// Every operation becomes a span: on the track of its stage and device, with its bytes and times;
// and a flow from what caused it.
//
// Tracks: "compute" (forward, backward), "host" (the host's kernels and commits), and below each
// device and each accelerator one track a stage, so that a track stands for one route over the
// links.
//
// Thread contract: made before the run; called on the owner thread, whose ring it is.

#include <array>
#include <vector>

#include "core/platform/platform.h"
#include "core/runtime/flow_causes.h"
#include "core/runtime/operation.h"
#include "profiler/record/recorder.h"

namespace sluice::runtime {

class RecordingSink final : public OperationSink {
 public:
  RecordingSink(record::Recorder& recorder, const platform::Platform& platform);
  void on_submit(const OperationState& /*state*/) override {}
  void on_finish(const OperationState& state) override;
  void record_step(const record::StepRecord& step);
  record::TrackId track(DeviceId device, Stage stage) const;
  record::TrackId accelerator_track(std::size_t accelerator, Stage stage) const;

 private:
  record::Recorder& recorder_;
  record::Ring& ring_;
  record::TrackId track_of(const Operation& operation) const;

  platform::EngineId host_engine_;
  platform::EngineId compute_engine_;
  FlowCauses flow_causes_;
  std::array<record::NameId, kStageCount> names_{};
  record::TrackId compute_;
  record::TrackId host_;
  std::vector<std::array<record::TrackId, kStageCount>> device_tracks_;
  std::vector<std::array<record::TrackId, kStageCount>> accelerator_tracks_;
};

}  // namespace sluice::runtime
