#include "core/runtime/run_counters.h"

#include <algorithm>
#include <string>

namespace sluice::runtime {
namespace {

constexpr const char* kDirectionNames[] = {"reads", "writes"};  // by platform::Direction
constexpr std::array<const char*, stages::kActivationWaitCount> kWaitCounterNames = {
    "activations out: waited (ns)", "activations back: waited (ns)"};
constexpr std::array<const char*, stages::kActivationTierCount> kTierNames = {
    "accelerators: live activations (bytes)", "host: live activations (bytes)",
    "drives: live activations (bytes)"};

bool crosses(const platform::Device& device, platform::LinkId link) {
  const auto has = [link](const std::vector<platform::LinkId>& route) {
    return std::ranges::find(route, link) != route.end();
  };
  return has(device.host_route) || has(device.memory_route) || has(device.internal_route);
}

// A link of one device stands under it; a shared one stands alone.
record::TrackId parent_of(const platform::Platform& platform, platform::LinkId link,
                          std::span<const record::TrackId> devices) {
  record::TrackId parent = record::kNoTrack;
  for (std::size_t d = 0; d < platform.devices.size(); ++d) {
    if (!crosses(platform.devices[d], link)) continue;
    if (parent != record::kNoTrack) return record::kNoTrack;
    parent = devices[d];
  }
  return parent;
}

}  // namespace

RunCounters::RunCounters(record::Recorder& recorder, record::Ring& ring,
                         const platform::Platform& platform, const Tracks& tracks)
    : recorder_(recorder),
      ring_(ring),
      devices_(static_cast<std::int32_t>(platform.devices.size())),
      links_(static_cast<std::int32_t>(platform.links.size())),
      compute_(tracks.compute) {
  const auto add = [&](Counter& counter, record::TrackId parent, const std::string& name) {
    counter.track = recorder.add_track(parent, "counter", name);
  };
  add(host_bytes_, tracks.host, "host buffers (bytes)");
  if (tracks.accelerator != record::kNoTrack)
    add(accelerator_bytes_, tracks.accelerator, "accelerator0 memory used (bytes)");
  for (const DeviceId id : ids_of(devices_)) {
    const std::string& name = platform.device(id).name;
    const record::TrackId track = tracks.devices[static_cast<std::size_t>(index_of(id))];
    Device& device = devices_[id];
    for (std::size_t way = 0; way < 2; ++way) {
      add(device.transfers[way], track,
          name + " " + kDirectionNames[way] + " under way (transfers)");
    }
    add(device.buffers, track, name + " buffers in use (buffers)");
    add(device.memory_bytes, track, name + " memory used (bytes)");
  }
  for (const platform::LinkId link : ids_of(links_)) {
    const std::string& name = platform.link(link).name;
    const record::TrackId track =
        recorder.add_track(parent_of(platform, link, tracks.devices), "link", name);
    for (std::size_t way = 0; way < 2; ++way) {
      add(links_[link][way], track, name + " " + kDirectionNames[way] + " in flight (bytes)");
    }
  }
}

template <typename Visit>
void RunCounters::for_each(Visit&& visit) {
  visit(host_bytes_);
  visit(accelerator_bytes_);
  for (Device& device : devices_) {
    for (Counter& counter : device.transfers) visit(counter);
    visit(device.buffers);
    visit(device.memory_bytes);
  }
  for (LinkBytes& link : links_) {
    for (Counter& counter : link) visit(counter);
  }
  for (Counter& counter : activation_waits_) visit(counter);
  for (Counter& counter : activation_bytes_) visit(counter);
}

void RunCounters::move(const OperationState& state, std::int64_t sign, TimeNs now_ns) {
  const Operation& operation = state.operation;
  if (operation.cost.route.empty()) return;
  follow_level(now_ns);
  const OperationLabel& label = operation.label;
  const auto way = static_cast<std::size_t>(operation.cost.direction);
  if (label.device != kNoDevice) {
    Counter& transfers = devices_[label.device].transfers[way];
    set(transfers, transfers.value + sign, now_ns);
  }
  const std::int64_t size_bytes = label.size_bytes + label.padding_bytes;
  for (const platform::LinkId link : operation.cost.route) {
    Counter& bytes = links_[link][way];
    set(bytes, bytes.value + sign * size_bytes, now_ns);
  }
}

void RunCounters::on_buffers(DeviceId device, std::int32_t in_use, TimeNs now_ns) {
  follow_level(now_ns);
  set(devices_[device].buffers, in_use, now_ns);
}

void RunCounters::on_memory(std::int64_t host_bytes, std::span<const std::int64_t> device_bytes,
                            TimeNs now_ns) {
  follow_level(now_ns);
  set(host_bytes_, host_bytes, now_ns);
  for (std::size_t d = 0; d < device_bytes.size(); ++d) {
    set(devices_[DeviceId{static_cast<std::int32_t>(d)}].memory_bytes, device_bytes[d], now_ns);
  }
}

void RunCounters::on_accelerator_memory(std::int64_t used_bytes, TimeNs now_ns) {
  follow_level(now_ns);
  set(accelerator_bytes_, used_bytes, now_ns);
}

void RunCounters::on_activation_wait(const stages::ActivationWaited& waited) {
  follow_level(waited.to_ns);
  Counter& counter = activation_waits_[index_of(waited.why)];
  begin(counter, kWaitCounterNames[index_of(waited.why)], waited.from_ns);
  set(counter, counter.value + waited.to_ns - waited.from_ns, waited.to_ns);
}

void RunCounters::on_activation_bytes(stages::ActivationTier tier, std::int64_t size_bytes,
                                      TimeNs now_ns) {
  follow_level(now_ns);
  Counter& counter = activation_bytes_[index_of(tier)];
  begin(counter, kTierNames[index_of(tier)], now_ns);
  set(counter, size_bytes, now_ns);
}

// At 0, if it has not begun.
void RunCounters::begin(Counter& counter, const char* name, TimeNs now_ns) {
  if (counter.track != record::kNoTrack) return;
  counter.track = recorder_.add_track(compute_, "counter", name);
  counter.since_ns = now_ns;
}

// Ends that a worker stamped may be handed over out of order; a counter's time never goes back.
void RunCounters::set(Counter& counter, std::int64_t value, TimeNs now_ns) {
  if (counter.track == record::kNoTrack) return;
  now_ns = std::max(now_ns, counter.since_ns);
  if (!counter.is_written && is_on_ && now_ns - counter.since_ns >= kShortestNs) write(counter);
  counter.value = value;
  counter.since_ns = now_ns;
  counter.is_written = value == counter.written_value;
}

void RunCounters::write(Counter& counter) {
  ring_.try_push(record::CounterRecord{
      .track = counter.track, .ts = counter.since_ns, .value = static_cast<double>(counter.value)});
  counter.written_value = counter.value;
  counter.is_written = true;
}

// A reader does not know a counter's value once it was not recorded for a while.
void RunCounters::follow_level(TimeNs now_ns) {
  const bool is_on = recorder_.level() >= record::Level::all;
  if (is_on == is_on_) return;
  is_on_ = is_on;
  if (!is_on) return;
  for_each([now_ns](Counter& counter) {
    counter.since_ns = std::max(counter.since_ns, now_ns);
    counter.is_written = false;
    counter.written_value = -1;
  });
}

void RunCounters::write_pending() {
  if (!is_on_ || recorder_.level() < record::Level::all) return;
  for_each([this](Counter& counter) {
    if (!counter.is_written && counter.track != record::kNoTrack) write(counter);
  });
}

}  // namespace sluice::runtime
