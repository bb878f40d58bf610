#pragma once
// Every operation becomes a span: on the track of its stage and device, with its bytes and times;
// and a flow from what caused it. What is under way becomes counters (run_counters.h). A wait for
// activations becomes a span of its layer on the track "waiting", with the name of what a verdict
// calls it (profiler/analyze/cause.h).
//
// Tracks: "compute" (forward, backward), "host" (the host's kernels, commits, and what goes between
// ranks over no link), and below each device, each accelerator and "ranks" one track for each stage
// and route, or for each compute unit that the stage's kernels run on where the device has several.
// A track is made when an operation first takes its route, with the links of that route; so the
// links of a track are those that its bytes really took, whatever was changed meanwhile.
//
// Thread contract: made before the run; called on the owner thread, whose ring it is. Allocates
// when an operation takes a route that none took before, and at the first wait for activations.

#include <array>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/id_vector.h"
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
  void on_activation_wait(const stages::ActivationWaited& waited) override;
  void on_activation_bytes(stages::ActivationTier tier, std::int64_t size_bytes,
                           TimeNs now_ns) override {
    counters_->on_activation_bytes(tier, size_bytes, now_ns);
  }
  // The memory that buffers take: in host memory, and of each device's memory.
  void record_memory(std::int64_t host_bytes, std::span<const std::int64_t> device_bytes,
                     TimeNs now_ns) {
    counters_->on_memory(host_bytes, device_bytes, now_ns);
  }
  // Asked for what the first accelerator's memory holds, on the owner thread. Null: nothing is
  // known.
  void watch_accelerator_memory(std::function<std::int64_t()> used_bytes) {
    accelerator_memory_ = std::move(used_bytes);
  }
  // With the counters' samples up to there.
  void record_step(const record::StepRecord& step);
  void record_counters() { counters_->write_pending(); }
  // The level that is recorded from now on.
  void set_level(record::Level level, std::string_view who) { recorder_.set_level(level, who); }

 private:
  // The way that has one track: a kernel's route is empty.
  struct Way {
    std::span<const platform::LinkId> route;  // the platform's, which outlives this
    platform::Direction direction;
    std::int32_t unit;  // -1: the device has but one
    record::TrackId track;
  };
  using Ways = std::vector<Way>;  // a stage has one, and another for each live change of its route
  struct Place {
    record::TrackId track;
    std::string name;
    platform::EngineId engine;
    std::array<Ways, stages::kStageCount> ways;
  };

  record::Recorder& recorder_;
  record::Ring& ring_;
  void note_accelerator_memory(const OperationState& state);
  void begin_waiting();
  record::TrackId track_of(const OperationState& state);
  Place* place_of_ranks(const Operation& operation);
  Place* place_of(const Operation& operation);
  record::TrackId add_way(const Place& place, const OperationState& state);

  platform::EngineId compute_engine_;
  FlowCauses flow_causes_;
  std::optional<RunCounters> counters_;  // made once there are tracks to put them under
  std::array<record::NameId, stages::kStageCount> names_{};
  std::array<record::NameId, stages::kActivationWaitCount>
      wait_names_{};  // once `waiting_` is made
  record::TrackId compute_;
  record::TrackId waiting_ = record::kNoTrack;  // made when there is something to stand on it
  record::TrackId host_;
  IdVector<platform::LinkId, std::string> link_names_;
  IdVector<DeviceId, Place> devices_;
  std::vector<Place> accelerators_;
  std::optional<Place> ranks_;  // made when something goes between ranks over links
  std::function<std::int64_t()> accelerator_memory_;
};

}  // namespace sluice::runtime
