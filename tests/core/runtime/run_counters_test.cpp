// Counters against what the same operations say.

#include "core/runtime/run_counters.h"

#include <catch2/catch.hpp>
#include <map>
#include <string>

#include "core/runtime/clocks.h"
#include "core/runtime/recording.h"
#include "core/runtime/sync.h"
#include "test_platform.h"

using namespace sluice;
using namespace sluice::runtime;
using namespace sluice::stages;
using platform::Direction;

namespace {

using Samples = std::vector<std::pair<TimeNs, double>>;

// Samples by the counter's name, of what the rings hold.
std::map<std::string, Samples> samples_of(record::Recorder& recorder) {
  std::vector<record::Record> records;
  for (record::Ring* ring : recorder.rings()) ring->drain(records, ring->capacity());
  const std::vector<record::Track> tracks = recorder.tracks_since(0);
  std::map<std::string, Samples> samples;
  for (const record::Record& record : records) {
    if (record.kind() != record::RecordKind::counter) continue;
    samples[tracks[static_cast<std::size_t>(record.counter.track)].name].emplace_back(
        record.counter.ts, record.counter.value);
  }
  return samples;
}

OperationState transfer(int device, Direction direction, std::int64_t size_bytes,
                        const std::vector<platform::LinkId>& route) {
  OperationState state;
  state.operation.label.stage = Stage::state_read;
  state.operation.label.device = DeviceId{device};
  state.operation.label.size_bytes = size_bytes;
  state.operation.label.padding_bytes = 96;
  state.operation.cost.route = route;
  state.operation.cost.direction = direction;
  return state;
}

constexpr TimeNs kMs = 1'000'000;

// A recording and operations whose times a test sets.
struct Counted {
  platform::Platform platform = test_platform();
  record::Recorder recorder;
  RecordingSink sink{recorder, platform};
  OperationState read = transfer(0, Direction::read, 4000, platform.devices[0].host_route);
  OperationState write = transfer(0, Direction::write, 904, platform.devices[0].host_route);
  OperationState other = transfer(1, Direction::read, 1904, platform.devices[1].host_route);

  void begin(OperationState& state, TimeNs ts) {
    state.submit_ns = state.start_ns = ts;
    sink.on_submit(state);
  }
  void end(OperationState& state, TimeNs ts) {
    state.end_ns = ts;
    sink.on_finish(state);
  }
};

}  // namespace

TEST_CASE("what is under way is counted by device, what is in flight by link and direction") {
  Counted run;
  run.begin(run.read, 1 * kMs);
  run.begin(run.write, 2 * kMs);
  run.begin(run.other, 3 * kMs);
  run.end(run.read, 4 * kMs);
  run.end(run.other, 5 * kMs);
  run.end(run.write, 6 * kMs);
  run.sink.record_counters();
  const auto samples = samples_of(run.recorder);
  CHECK(samples.at("csd0 reads under way (transfers)") == Samples{{1 * kMs, 1}, {4 * kMs, 0}});
  CHECK(samples.at("csd0 writes under way (transfers)") ==
        Samples{{1 * kMs, 0}, {2 * kMs, 1}, {6 * kMs, 0}});
  CHECK(samples.at("csd1 reads under way (transfers)") ==
        Samples{{1 * kMs, 0}, {3 * kMs, 1}, {5 * kMs, 0}});
  CHECK(samples.at("host reads in flight (bytes)") ==
        Samples{{1 * kMs, 4096}, {3 * kMs, 6096}, {4 * kMs, 2000}, {5 * kMs, 0}});
  CHECK(samples.at("host writes in flight (bytes)") ==
        Samples{{1 * kMs, 0}, {2 * kMs, 1000}, {6 * kMs, 0}});
  CHECK(samples.at("csd1.drive reads in flight (bytes)") ==
        Samples{{1 * kMs, 0}, {3 * kMs, 2000}, {5 * kMs, 0}});
}

TEST_CASE("counters stand under their device or link, and a device's links under it") {
  Counted run;
  const std::vector<record::Track> tracks = run.recorder.tracks_since(0);
  const auto path = [&](const std::string& name) {
    std::string text;
    for (const record::Track& track : tracks) {
      if (track.name != name || track.kind != "counter") continue;
      for (const record::Track* at = &track; at->parent != record::kNoTrack;) {
        at = &tracks[static_cast<std::size_t>(at->parent)];
        text += at->kind + " " + at->name + "/";
      }
    }
    return text;
  };
  CHECK(path("csd1 buffers in use (buffers)") == "device csd1/");
  CHECK(path("csd1.internal writes in flight (bytes)") == "link csd1.internal/device csd1/");
  CHECK(path("host reads in flight (bytes)") == "link host/");
  CHECK(path("host buffers (bytes)") == "host host/");
}

TEST_CASE("values that hold for less than a tenth of a millisecond may be left out, others not") {
  Counted run;
  run.begin(run.read, 10 * kMs);
  run.begin(run.other, 20 * kMs);
  run.end(run.other, 20 * kMs + RunCounters::kShortestNs - 1);  // too short
  run.begin(run.other, 30 * kMs);
  run.end(run.other, 30 * kMs + RunCounters::kShortestNs);
  run.end(run.read, 40 * kMs);
  run.begin(run.read, 40 * kMs);  // at once: it was never seen idle
  run.sink.record_counters();
  const auto samples = samples_of(run.recorder);
  CHECK(samples.at("host reads in flight (bytes)") ==
        Samples{{10 * kMs, 4096}, {30 * kMs, 6096}, {30 * kMs + RunCounters::kShortestNs, 4096}});
  CHECK(samples.at("csd0 reads under way (transfers)") == Samples{{10 * kMs, 1}});
}

TEST_CASE("ends that come out of order never turn a counter's time back") {
  Counted run;
  run.begin(run.read, 1 * kMs);
  run.begin(run.other, 2 * kMs);
  run.end(run.other, 9 * kMs);
  run.end(run.read, 8 * kMs);
  run.sink.record_counters();
  CHECK(samples_of(run.recorder).at("host reads in flight (bytes)") ==
        Samples{{1 * kMs, 4096}, {2 * kMs, 6096}, {9 * kMs, 0}});
}

TEST_CASE("below level all nothing is written; back there, each counter says what it is") {
  Counted run;
  const std::int64_t device_bytes[] = {1 << 20, 2 << 20};
  run.sink.record_memory(5 << 20, device_bytes, 0);
  run.recorder.set_level(record::Level::transfers);
  run.begin(run.read, 1 * kMs);
  run.begin(run.write, 2 * kMs);
  run.end(run.read, 3 * kMs);
  run.sink.record_counters();
  CHECK(samples_of(run.recorder).empty());
  run.recorder.set_level(record::Level::all);
  run.begin(run.other, 7 * kMs);
  run.sink.record_counters();
  const auto samples = samples_of(run.recorder);
  CHECK(samples.at("csd0 writes under way (transfers)") == Samples{{7 * kMs, 1}});
  CHECK(samples.at("csd0 reads under way (transfers)") == Samples{{7 * kMs, 0}});
  CHECK(samples.at("csd1 reads under way (transfers)") == Samples{{7 * kMs, 1}});
  CHECK(samples.at("host buffers (bytes)") == Samples{{7 * kMs, 5 << 20}});
  CHECK(samples.at("csd1 memory used (bytes)") == Samples{{7 * kMs, 2 << 20}});
}

TEST_CASE("buffers of a device are counted as a pool hands them out, also those handed on") {
  Counted run;
  Runtime runtime(std::make_unique<SimulatedClock>(run.platform, Disturbance{}));
  Pool pool(runtime, 2, DeviceId{1});
  runtime.add_sink(&run.sink);
  const auto hold = [&](TimeNs dur_ns) -> Task<Status> {
    Waiting waiting;
    waiting.what = "a buffer";
    Result<Pool::Lease> lease = co_await pool.acquire(waiting);
    CO_RETURN_IF_ERROR(lease);
    Operation kernel;
    kernel.runtime = &runtime;
    kernel.cost.engine = run.platform.host_engine;
    kernel.cost.engine_dur_ns = dur_ns;
    Status status = co_await kernel;
    co_return status;
  };
  const auto all = [&]() -> Task<Status> {
    TaskGroup group(runtime);
    for (int i = 0; i < 4; ++i) group.spawn(hold(kMs));  // one after the other, on one engine
    Status status = co_await group.join();
    co_return status;
  };
  REQUIRE(runtime.run(all()).ok());
  run.sink.record_counters();
  CHECK(samples_of(run.recorder).at("csd1 buffers in use (buffers)") ==
        Samples{{0, 2}, {3 * kMs, 1}, {4 * kMs, 0}});
}

TEST_CASE("a recording that begins in the middle counts what is under way") {
  Counted run;
  Runtime runtime(std::make_unique<SimulatedClock>(run.platform, Disturbance{}));
  const auto read = [&](std::int64_t size_bytes) -> Task<Status> {
    Operation operation;
    operation.runtime = &runtime;
    operation.label = {.stage = Stage::state_read, .device = DeviceId{0}, .size_bytes = size_bytes};
    operation.cost.route = run.platform.devices[0].host_route;
    Status status = co_await operation;
    co_return status;
  };
  const auto all = [&]() -> Task<Status> {
    TaskGroup group(runtime);
    group.spawn(read(40'000'000));  // 100 ms of the drive's
    group.spawn(read(4'000'000));
    runtime.add_sink(&run.sink);
    Status status = co_await group.join();
    co_return status;
  };
  REQUIRE(runtime.run(all()).ok());
  run.sink.record_counters();
  const auto samples = samples_of(run.recorder);
  const Samples& reads = samples.at("csd0 reads under way (transfers)");
  REQUIRE(reads.size() == 3);
  CHECK(reads[0] == std::pair<TimeNs, double>(0, 2));
  CHECK(reads[1].second == 1);
  CHECK(reads[2].second == 0);
}

TEST_CASE("waits for activations add up by cause, and live bytes are those that were told") {
  Counted run;
  run.sink.on_activation_wait({ActivationWait::room, LayerId{3}, 0, 10 * kMs, 14 * kMs});
  run.sink.on_activation_wait({ActivationWait::room, LayerId{4}, 0, 20 * kMs, 21 * kMs});
  run.sink.on_activation_bytes(ActivationTier::drives, 5000, 12 * kMs);
  run.sink.on_activation_bytes(ActivationTier::drives, 0, 22 * kMs);
  run.sink.record_counters();
  const auto samples = samples_of(run.recorder);
  const double ms = kMs;
  CHECK(samples.at("activations out: waited (ns)") ==
        Samples{{10 * kMs, 0}, {14 * kMs, 4 * ms}, {21 * kMs, 5 * ms}});
  CHECK(samples.at("drives: live activations (bytes)") == Samples{{12 * kMs, 5000}, {22 * kMs, 0}});
  // What has nothing to say has no track.
  CHECK_FALSE(samples.contains("activations back: waited (ns)"));
  CHECK_FALSE(samples.contains("host: live activations (bytes)"));
}

TEST_CASE("a wait for activations is a span of its layer, named by what a verdict calls it") {
  Counted run;
  run.sink.on_activation_wait({ActivationWait::block, LayerId{3}, 7, 10 * kMs, 14 * kMs});
  std::vector<record::Record> records;
  for (record::Ring* ring : run.recorder.rings()) ring->drain(records, ring->capacity());
  const auto span = std::ranges::find_if(records, [](const record::Record& record) {
    return record.kind() == record::RecordKind::span;
  });
  REQUIRE(span != records.end());
  CHECK(span->span.layer == 3);
  CHECK(span->span.step == 7);
  CHECK(span->span.ts == 10 * kMs);
  CHECK(span->span.dur == 4 * kMs);
  CHECK(run.recorder.tracks_since(0)[static_cast<std::size_t>(span->span.track)].kind == "waiting");
  CHECK(span->span.name == run.recorder.intern("activations back"));
}
