#include "core/runtime/recording.h"

#include <string>

namespace sluice::runtime {
namespace {

// Records between two visits of the collector: it comes several times a second, and a step of a
// large run has some ten thousand operations.
constexpr std::size_t kRingRecords = 1 << 16;

bool is_on_device(Stage stage) {
  switch (stage) {
    case Stage::gradient_down:
    case Stage::state_read:
    case Stage::gradient_read:
    case Stage::update:
    case Stage::state_write:
    case Stage::parameters_up:
    case Stage::create_state:
    case Stage::load_state:
      return true;
    default:
      return false;
  }
}

}  // namespace

RecordingSink::RecordingSink(record::Recorder& recorder, const platform::Platform& platform)
    : recorder_(recorder),
      ring_(recorder.add_ring(kRingRecords)),
      host_engine_(platform.host_engine),
      compute_engine_(platform.compute_engine) {
  for (int s = 0; s < kStageCount; ++s) {
    names_[static_cast<std::size_t>(s)] = recorder.intern(stage_name(static_cast<Stage>(s)));
  }
  compute_ = recorder.add_track(record::kNoTrack, "compute", "compute");
  host_ = recorder.add_track(record::kNoTrack, "host", "host");
  for (std::size_t a = 0; a < platform.accelerator_routes.size(); ++a) {
    const std::string accelerator = "accelerator" + std::to_string(a);
    const record::TrackId parent = recorder.add_track(record::kNoTrack, "link", accelerator);
    std::array<record::TrackId, kStageCount>& tracks = accelerator_tracks_.emplace_back();
    for (const Stage stage : {Stage::layer_in, Stage::peer_in, Stage::gradient_out}) {
      tracks[static_cast<std::size_t>(stage)] =
          recorder.add_track(parent, "link", accelerator + " " + stage_name(stage));
    }
  }
  std::vector<record::TrackId> devices;
  for (const platform::Device& device : platform.devices) {
    const record::TrackId parent = recorder.add_track(record::kNoTrack, "device", device.name);
    devices.push_back(parent);
    std::array<record::TrackId, kStageCount>& tracks = device_tracks_.emplace_back();
    for (int s = 0; s < kStageCount; ++s) {
      const auto stage = static_cast<Stage>(s);
      if (!is_on_device(stage)) continue;
      const std::string name = device.name + " " + stage_name(stage);
      tracks[static_cast<std::size_t>(s)] = recorder.add_track(parent, "device", name);
    }
  }
  counters_.emplace(recorder, ring_, platform, host_, devices);
}

record::TrackId RecordingSink::track(DeviceId device, Stage stage) const {
  if (stage == Stage::forward || stage == Stage::backward || stage == Stage::validate ||
      stage == Stage::sample) {
    return compute_;
  }
  if (device == kNoDevice || !is_on_device(stage)) return host_;
  return device_tracks_[static_cast<std::size_t>(index_of(device))]
                       [static_cast<std::size_t>(index_of(stage))];
}

record::TrackId RecordingSink::accelerator_track(std::size_t accelerator, Stage stage) const {
  return accelerator_tracks_[accelerator][static_cast<std::size_t>(stage)];
}

// A kernel is on the track of what runs it: an update of a plain drive on the host, a selection
// that the accelerator makes with what it computes.
record::TrackId RecordingSink::track_of(const Operation& operation) const {
  const OperationLabel& label = operation.label;
  if (label.accelerator >= 0) {
    return accelerator_track(static_cast<std::size_t>(label.accelerator), label.stage);
  }
  if (operation.cost.route.empty()) {
    if (operation.cost.engine == host_engine_) return host_;
    if (operation.cost.engine == compute_engine_) return compute_;
  }
  return track(label.device, label.stage);
}

void RecordingSink::on_finish(const OperationState& state) {
  counters_->on_finish(state);
  if (recorder_.level() < record::Level::transfers) return;
  const OperationLabel& label = state.operation.label;
  record::SpanRecord span;
  span.status = state.status.ok() ? record::SpanStatus::ok : record::SpanStatus::failed;
  span.device = static_cast<std::int16_t>(index_of(label.device));
  span.layer = static_cast<std::int16_t>(index_of(label.layer));
  span.name = names_[static_cast<std::size_t>(index_of(label.stage))];
  span.track = track_of(state.operation);
  span.step = state.step;
  span.subgroup = index_of(label.subgroup);
  span.submit_ts = state.submit_ns;
  span.ts = state.start_ns;
  span.dur = state.end_ns - state.start_ns;
  span.bytes = label.size_bytes;
  span.padding_bytes = label.padding_bytes;
  const record::SpanRef ref = ring_.try_push_span(span);  // a full ring counts what it drops
  if (ref == record::kNoSpan || recorder_.level() < record::Level::all) return;
  for (const record::SpanRef cause : flow_causes_.causes_of(state)) {
    ring_.try_push(record::FlowRecord{.from = cause, .to = ref});
  }
  flow_causes_.remember(state, ref);
}

void RecordingSink::record_step(const record::StepRecord& step) {
  counters_->write_pending();
  if (recorder_.level() >= record::Level::steps) ring_.try_push(step);
}

}  // namespace sluice::runtime
