#include "core/runtime/recording.h"

#include <algorithm>
#include <string>

#include "base/check.h"

namespace sluice::runtime {
namespace {

// Records between two visits of the collector: it comes several times a second, and a step of a
// large run has some ten thousand operations.
constexpr std::size_t kRingRecords = 1 << 16;

constexpr platform::EngineId kNoEngine{-1};

// By ActivationWait.
constexpr std::array<const char*, stages::kActivationWaitCount> kWaitNames = {"activations out",
                                                                              "activations back"};

// "csd0 state_read over drive, internal": of links below the place only their own names; "csd0
// update on unit 1".
std::string name_of_way(const std::string& place, const OperationState& state,
                        const IdVector<platform::LinkId, std::string>& link_names) {
  std::string name = place + " " + std::string(stages::stage_name(state.operation.label.stage));
  if (state.unit >= 0) name += " on unit " + std::to_string(state.unit);
  const char* joint = " over ";
  for (const platform::LinkId id : state.operation.cost.route) {
    const std::string& link = link_names[id];
    name += joint + (link.starts_with(place + ".") ? link.substr(place.size() + 1) : link);
    joint = ", ";
  }
  return name;
}

bool is_same_route(std::span<const platform::LinkId> a, std::span<const platform::LinkId> b) {
  return a.data() == b.data() ? a.size() == b.size() : std::ranges::equal(a, b);
}

}  // namespace

RecordingSink::RecordingSink(record::Recorder& recorder, const platform::Platform& platform)
    : recorder_(recorder),
      ring_(recorder.add_ring(kRingRecords)),
      compute_engine_(platform.compute_engine) {
  for (const stages::StageInfo& stage : stages::kStages)
    names_[index_of(stage.stage)] = recorder.intern(stage.name);
  for (const platform::Link& link : platform.links) link_names_.push_back(link.name);
  compute_ = recorder.add_track(record::kNoTrack, "compute", "compute");
  host_ = recorder.add_track(record::kNoTrack, "host", "host");
  for (std::size_t a = 0; a < platform.accelerator_routes.size(); ++a) {
    const std::string name = "accelerator" + std::to_string(a);
    accelerators_.push_back(
        {recorder.add_track(record::kNoTrack, "link", name), name, kNoEngine, {}});
  }
  std::vector<record::TrackId> devices;
  for (const platform::Device& device : platform.devices) {
    devices.push_back(recorder.add_track(record::kNoTrack, "device", device.name));
    devices_.push_back({devices.back(), device.name, device.engine, {}});
  }
  counters_.emplace(
      recorder, ring_, platform,
      RunCounters::Tracks{compute_, host_, devices,
                          accelerators_.empty() ? record::kNoTrack : accelerators_.front().track});
}

// Null: it is on the track of what runs it. A kernel may be of a device and run elsewhere: the
// update of a plain drive on the host, a selection that the accelerator makes with what it
// computes.
RecordingSink::Place* RecordingSink::place_of(const Operation& operation) {
  const OperationLabel& label = operation.label;
  if (label.accelerator >= 0) return &accelerators_[static_cast<std::size_t>(label.accelerator)];
  if (stages::stage_info(label.stage).place == stages::StagePlace::ranks)
    return place_of_ranks(operation);
  if (label.device == kNoDevice) return nullptr;
  Place& device = devices_[label.device];
  const bool is_kernel = operation.cost.route.empty();
  if (is_kernel && (operation.cost.engine != device.engine || device.engine == kNoEngine)) {
    return nullptr;
  }
  return &device;
}

RecordingSink::Place* RecordingSink::place_of_ranks(const Operation& operation) {
  if (operation.cost.route.empty()) return nullptr;
  if (!ranks_) {
    ranks_ = Place{recorder_.add_track(record::kNoTrack, "link", "ranks"), "ranks", kNoEngine, {}};
  }
  return &*ranks_;
}

record::TrackId RecordingSink::track_of(const OperationState& state) {
  const Operation& operation = state.operation;
  Place* place = place_of(operation);
  if (place == nullptr) {
    CHECK(operation.cost.route.empty());  // bytes of nobody's would stand on no link
    const bool computes =
        stages::stage_info(operation.label.stage).place == stages::StagePlace::compute ||
        operation.cost.engine == compute_engine_;
    return computes ? compute_ : host_;
  }
  Ways& ways = place->ways[index_of(operation.label.stage)];
  for (const Way& way : ways) {
    if (way.direction == operation.cost.direction && way.unit == state.unit &&
        is_same_route(way.route, operation.cost.route)) {
      return way.track;
    }
  }
  ways.push_back(
      {operation.cost.route, operation.cost.direction, state.unit, add_way(*place, state)});
  return ways.back().track;
}

record::TrackId RecordingSink::add_way(const Place& place, const OperationState& state) {
  const Operation& operation = state.operation;
  std::vector<record::TrackLink> links;
  const auto direction = operation.cost.direction == platform::Direction::read
                             ? record::LinkDirection::read
                             : record::LinkDirection::write;
  for (const platform::LinkId link : operation.cost.route) {
    const auto is_it = [link](const record::TrackLink& other) {
      return other.link_id == platform::index_of(link);
    };
    // A route of ranks may cross a link several times; a track has it once.
    if (std::ranges::none_of(links, is_it)) links.push_back({platform::index_of(link), direction});
  }
  const bool is_of_device = operation.label.accelerator < 0 && operation.label.device != kNoDevice;
  const std::string_view kind = is_of_device ? "device" : "link";
  return recorder_.add_track(place.track, kind, name_of_way(place.name, state, link_names_), links);
}

void RecordingSink::on_finish(const OperationState& state) {
  counters_->on_finish(state);
  note_accelerator_memory(state);
  if (recorder_.level() < record::Level::transfers) return;
  const OperationLabel& label = state.operation.label;
  record::SpanRecord span;
  span.status = state.status.ok() ? record::SpanStatus::ok : record::SpanStatus::failed;
  span.device = static_cast<std::int16_t>(index_of(label.device));
  span.layer = static_cast<std::int16_t>(index_of(label.layer));
  span.name = names_[index_of(label.stage)];
  span.track = track_of(state);
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

void RecordingSink::on_activation_wait(const stages::ActivationWaited& waited) {
  counters_->on_activation_wait(waited);
  if (recorder_.level() < record::Level::transfers) return;
  if (waiting_ == record::kNoTrack) begin_waiting();
  record::SpanRecord span;
  span.layer = static_cast<std::int16_t>(index_of(waited.layer));
  span.name = wait_names_[index_of(waited.why)];
  span.track = waiting_;
  span.step = waited.step;
  span.submit_ts = span.ts = waited.from_ns;
  span.dur = waited.to_ns - waited.from_ns;
  ring_.try_push_span(span);
}

void RecordingSink::begin_waiting() {
  waiting_ = recorder_.add_track(compute_, "waiting", "waiting");
  for (std::size_t why = 0; why < stages::kActivationWaitCount; ++why) {
    wait_names_[why] = recorder_.intern(kWaitNames[why]);
  }
}

// Memory that a layer takes and gives back shows where its operations end.
void RecordingSink::note_accelerator_memory(const OperationState& state) {
  if (!accelerator_memory_) return;
  const stages::StagePlace place = stages::stage_info(state.operation.label.stage).place;
  if (place != stages::StagePlace::compute && place != stages::StagePlace::accelerator) return;
  counters_->on_accelerator_memory(accelerator_memory_(), state.end_ns);
}

void RecordingSink::record_step(const record::StepRecord& step) {
  counters_->write_pending();
  if (recorder_.level() >= record::Level::steps) ring_.try_push(step);
}

}  // namespace sluice::runtime
