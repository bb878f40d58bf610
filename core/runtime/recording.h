#pragma once
// Every operation becomes a span: on the track of its stage and device, with its bytes and times;
// and a flow from what caused it. What is under way becomes counters (run_counters.h).
//
// Tracks: "compute" (forward, backward), "host" (the host's kernels and commits), and below each
// device and each accelerator one track a stage, so that a track stands for one route over the
// links.
//
// Thread contract: made before the run; called on the owner thread, whose ring it is.

#include <array>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/platform/platform.h"
#include "core/runtime/flow_causes.h"
#include "core/runtime/operation.h"
#include "core/runtime/run_counters.h"
#include "profiler/record/recorder.h"

namespace sluice::runtime {

class RecordingSink final : public OperationSink {
 public:
  RecordingSink(record::Recorder& recorder, const platform::Platform& platform);
  void on_submit(const OperationState& state) override { counters_->on_submit(state); }
  void on_finish(const OperationState& state) override;
  void on_found(const OperationState& state) override { counters_->on_submit(state); }
  void on_buffers(DeviceId device, std::int32_t in_use, TimeNs now_ns) override {
    counters_->on_buffers(device, in_use, now_ns);
  }
  // What buffers take: in host memory, and of each device's memory.
  void record_memory(std::int64_t host_bytes, std::span<const std::int64_t> device_bytes,
                     TimeNs now_ns) {
    counters_->on_memory(host_bytes, device_bytes, now_ns);
  }
  // With the counters' samples up to there.
  void record_step(const record::StepRecord& step);
  void record_counters() { counters_->write_pending(); }
  // What is recorded from now on.
  void set_level(record::Level level, std::string_view who) { recorder_.set_level(level, who); }
  record::TrackId track(DeviceId device, Stage stage) const;
  record::TrackId accelerator_track(std::size_t accelerator, Stage stage) const;

 private:
  record::Recorder& recorder_;
  record::Ring& ring_;
  record::TrackId track_of(const Operation& operation) const;

  platform::EngineId host_engine_;
  platform::EngineId compute_engine_;
  FlowCauses flow_causes_;
  std::optional<RunCounters> counters_;  // made once there are tracks to put them under
  std::array<record::NameId, kStageCount> names_{};
  record::TrackId compute_;
  record::TrackId host_;
  std::vector<std::array<record::TrackId, kStageCount>> device_tracks_;
  std::vector<std::array<record::TrackId, kStageCount>> accelerator_tracks_;
};

}  // namespace sluice::runtime
