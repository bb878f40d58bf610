#include "profiler/cupti/cupti_recording.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <iostream>
#include <thread>

#include "base/clock.h"
#include "tests/profiler/cupti/fake_cupti.h"
#include "tests/skip.h"

namespace sluice::cupti {
namespace {

using record::Record;
using record::Recorder;

// Nothing is flushed unless a test asks.
const CuptiOptions kOnlyWhenAsked{.flush_interval = std::chrono::hours(1)};

std::unique_ptr<CuptiRecording> start(Recorder& recorder, const FakeCupti& fake,
                                      const CuptiOptions& options = kOnlyWhenAsked) {
  auto recording = CuptiRecording::start(recorder, fake.api(), options);
  if (!recording.ok()) FAIL(recording.error().message());
  return std::move(*recording);
}

std::vector<Record> drain(Recorder& recorder) {
  std::vector<Record> records;
  for (record::Ring* ring : recorder.rings()) ring->drain(records, ring->capacity());
  return records;
}

std::int64_t count(const CuptiRecording& recording, const std::string& name) {
  for (const CuptiCount& counted : recording.counts()) {
    if (counted.name == name) return counted.value;
  }
  FAIL("there is no count " << name);
  return -1;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("kernels of a run arrive with the step and layer of the thread that launched them") {
  FakeCupti fake;
  Recorder recorder;
  auto recording = start(recorder, fake);
  const TimeNs before = monotonic_now_ns();
  {
    const auto step = recording->step_region(4);
    {
      const auto layer = recording->layer_region(LayerId{2});
      fake.launch("attention", 500);
    }
    const auto layer = recording->layer_region(LayerId{3});
    fake.launch("feed_forward", 700);
  }
  fake.launch("afterwards", 900);
  REQUIRE(recording->flush().ok());
  REQUIRE(recording->stop().ok());
  const TimeNs after = monotonic_now_ns();
  const std::vector<Record> records = drain(recorder);
  REQUIRE(records.size() == 3);
  const auto names = recorder.names_since(0);
  std::vector<std::string> seen;
  for (const Record& record : records) {
    seen.push_back(names[static_cast<std::size_t>(record.span.name)] + " " +
                   std::to_string(record.span.step) + " " + std::to_string(record.span.layer) +
                   " " + std::to_string(record.span.dur));
    // On the run's clock, give or take how well the two clocks can be read together.
    REQUIRE(record.span.submit_ts > before - 10'000'000);
    REQUIRE(record.span.ts < after + 10'000'000);
    REQUIRE(record.span.ts - record.span.submit_ts == 100);
  }
  REQUIRE(seen == std::vector<std::string>{"attention 4 2 500", "feed_forward 4 3 700",
                                           "afterwards -1 -1 900"});
  REQUIRE(count(*recording, "cupti_records") == 3);
  REQUIRE(count(*recording, "cupti_without_step") == 1);
  REQUIRE(count(*recording, "cupti_buffers_kept") == 0);
  REQUIRE(count(*recording, "cupti_failed_regions") == 0);
}

TEST_CASE(
    "attributes are set before callbacks are registered, and those before kinds are enabled") {
  FakeCupti fake;
  Recorder recorder;
  auto recording = start(
      recorder, fake,
      {.flush_interval = std::chrono::milliseconds(3'600'000), .device_buffer_count_max = 12});
  const std::vector<std::string> calls = fake.calls();
  const auto at = [&](const std::string& begin) {
    const auto found = std::find_if(calls.begin(), calls.end(), [&](const std::string& call) {
      return call.starts_with(begin);
    });
    REQUIRE(found != calls.end());
    return found - calls.begin();
  };
  REQUIRE(calls[1] == "set 2 = 12");
  REQUIRE(at("set 9 = 1") < at("register"));
  REQUIRE(at("set 5 = 1") < at("register"));
  REQUIRE(at("register") < at("period 3600000"));
  REQUIRE(at("period") < at("enable"));
  REQUIRE(at("enable") < at("quiet runtime"));
  REQUIRE(at("enable 10") > 0);
  REQUIRE(std::count_if(calls.begin(), calls.end(),
                        [](const std::string& call) { return call.starts_with("enable "); }) == 10);
  REQUIRE(recording->stop().ok());
  const std::vector<std::string> all = fake.calls();
  const auto forced = std::find(all.begin(), all.end(), "flush 1");
  const auto disabled = std::find(all.begin(), all.end(), "disable 10");
  REQUIRE(forced < disabled);
  REQUIRE(disabled < all.end());
}

TEST_CASE(
    "a kind that cannot be enabled is an error with advice, and the others are disabled again") {
  FakeCupti fake;
  fake.fail("enable 10", CUPTI_ERROR_UNKNOWN);
  Recorder recorder;
  const auto recording = CuptiRecording::start(recorder, fake.api(), kOnlyWhenAsked);
  REQUIRE_FALSE(recording.ok());
  REQUIRE(recording.error().code() == ErrorCode::unsupported);
  const std::string& message = recording.error().message();
  REQUIRE(has(message, "cannot enable records of kind CONCURRENT_KERNEL"));
  REQUIRE(has(message, "CUPTI_ERROR_UNKNOWN (999)"));
  REQUIRE(has(message, "nvidia-smi"));
  const std::vector<std::string> calls = fake.calls();
  REQUIRE(std::count(calls.begin(), calls.end(), "disable 39") == 1);
  REQUIRE(std::count(calls.begin(), calls.end(), "disable 10") == 0);
  // Nothing of it is left in the way of the next one.
  fake.fail("enable 10", CUPTI_SUCCESS);
  REQUIRE(start(recorder, fake)->stop().ok());
}

TEST_CASE("every other call that CUPTI refuses at the start is an error that names it") {
  const auto [call, what] = GENERATE(table<std::string, std::string>({
      {"set 2", "cannot set DEVICE_BUFFER_POOL_LIMIT to 16"},
      {"set 9", "cannot set PER_THREAD_ACTIVITY_BUFFER to 1"},
      {"register", "cannot register its callbacks"},
      {"period", "cannot set its flush period"},
      {"timestamp", "cannot read its clock"},
  }));
  FakeCupti fake;
  fake.fail(call, CUPTI_ERROR_INSUFFICIENT_PRIVILEGES);
  Recorder recorder;
  const auto recording = CuptiRecording::start(recorder, fake.api(), kOnlyWhenAsked);
  REQUIRE_FALSE(recording.ok());
  REQUIRE(has(recording.error().message(), what));
  REQUIRE(has(recording.error().message(), "NVreg_RestrictProfilingToAdminUsers=0"));
}

TEST_CASE("a clock that somebody else gave to CUPTI is noticed before anything is enabled") {
  FakeCupti fake;
  fake.set_clock_offset(-1'000'000'000'000);
  Recorder recorder;
  const auto recording = CuptiRecording::start(recorder, fake.api(), kOnlyWhenAsked);
  REQUIRE_FALSE(recording.ok());
  REQUIRE(has(recording.error().message(), "CLOCK_REALTIME"));
  REQUIRE(fake.calls() == std::vector<std::string>{"timestamp"});
}

TEST_CASE("a second recording in the process is refused while one runs") {
  FakeCupti fake;
  Recorder recorder;
  auto first = start(recorder, fake);
  const auto second = CuptiRecording::start(recorder, fake.api(), kOnlyWhenAsked);
  REQUIRE_FALSE(second.ok());
  REQUIRE(second.error().code() == ErrorCode::busy);
  fake.launch("kernel");
  REQUIRE(first->stop().ok());
  REQUIRE(drain(recorder).size() == 1);
  REQUIRE(start(recorder, fake)->stop().ok());
}

TEST_CASE("with all buffers out, CUPTI drops records; both are counted, and the rest arrives") {
  FakeCupti fake;
  Recorder recorder;
  auto recording =
      start(recorder, fake, {.flush_interval = std::chrono::hours(1), .buffer_count_max = 1});
  fake.launch("before");
  fake.deliver();
  // The only buffer waits to be decoded.
  fake.launch("dropped");
  REQUIRE(recording->flush().ok());
  REQUIRE(count(*recording, "cupti_dropped") == 2);
  REQUIRE(count(*recording, "cupti_buffers_refused") == 2);
  fake.launch("after");
  REQUIRE(recording->stop().ok());
  REQUIRE(count(*recording, "cupti_dropped") == 2);
  REQUIRE(drain(recorder).size() == 2);
}

TEST_CASE("what is incomplete when the run ends comes with the forced flush") {
  FakeCupti fake;
  Recorder recorder;
  auto recording = start(recorder, fake);
  fake.hold_buffers(true);
  fake.launch("kernel");
  REQUIRE(recording->flush().ok());
  REQUIRE(count(*recording, "cupti_buffers") == 0);
  REQUIRE(recording->stop().ok());
  REQUIRE(drain(recorder).size() == 1);
}

TEST_CASE("below level all nothing is decoded, and the buffers are counted and used again") {
  FakeCupti fake;
  Recorder recorder;
  recorder.set_level(record::Level::transfers);
  auto recording =
      start(recorder, fake, {.flush_interval = std::chrono::hours(1), .buffer_count_max = 1});
  for (int i = 0; i < 3; ++i) {
    fake.launch("kernel");
    REQUIRE(recording->flush().ok());
  }
  REQUIRE(drain(recorder).empty());
  REQUIRE(count(*recording, "cupti_buffers_below_level") == 3);
  REQUIRE(count(*recording, "cupti_dropped") == 0);
  recorder.set_level(record::Level::all);
  fake.launch("kernel");
  REQUIRE(recording->stop().ok());
  REQUIRE(drain(recorder).size() == 1);
}

TEST_CASE("a flush that fails is told by stop, and stop still gives everything back") {
  FakeCupti fake;
  Recorder recorder;
  auto recording = start(recorder, fake);
  fake.fail("flush", CUPTI_ERROR_UNKNOWN);
  REQUIRE_FALSE(recording->flush().ok());
  const Status stopped = recording->stop();
  REQUIRE_FALSE(stopped.ok());
  REQUIRE(has(stopped.error().message(), "cannot flush"));
  REQUIRE(count(*recording, "cupti_buffers_kept") == 0);
  fake.fail("flush", CUPTI_SUCCESS);
  REQUIRE(start(recorder, fake)->stop().ok());
}

TEST_CASE("regions that CUPTI refuses are counted and not popped") {
  FakeCupti fake;
  Recorder recorder;
  auto recording = start(recorder, fake);
  fake.fail("push", CUPTI_ERROR_INVALID_PARAMETER);
  {
    const auto step = recording->step_region(1);
    const auto layer = recording->layer_region(LayerId{1});
  }
  REQUIRE(count(*recording, "cupti_failed_regions") == 2);
  const std::vector<std::string> calls = fake.calls();
  REQUIRE(std::none_of(calls.begin(), calls.end(),
                       [](const std::string& call) { return call.starts_with("pop"); }));
  REQUIRE(recording->stop().ok());
}

TEST_CASE("snapshots of the clocks are taken as time goes by, and at both ends") {
  FakeCupti fake;
  Recorder recorder;
  auto recording = start(
      recorder, fake,
      {.flush_interval = std::chrono::hours(1), .snapshot_interval = std::chrono::milliseconds(0)});
  REQUIRE(recording->clock_snapshots_since(0).size() == 1);
  REQUIRE(recording->flush().ok());
  REQUIRE(recording->clock_snapshots_since(0).size() == 2);
  REQUIRE(recording->stop().ok());
  const std::vector<ClockSnapshot> snapshots = recording->clock_snapshots_since(1);
  REQUIRE(snapshots.size() >= 2);
  REQUIRE(snapshots[0].monotonic_ts < snapshots[1].monotonic_ts);
}

TEST_CASE("threads that launch and a recording that flushes on its own lose nothing") {
  FakeCupti fake;
  Recorder recorder;
  auto recording = start(recorder, fake, {.flush_interval = std::chrono::milliseconds(1)});
  constexpr int kThreads = 2;
  constexpr int kLaunches = 500;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kLaunches; ++i) {
        const auto step = recording->step_region(i);
        const auto layer = recording->layer_region(LayerId{t});
        fake.launch(t == 0 ? "first" : "second");
        if (i % 100 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  REQUIRE(recording->stop().ok());
  const std::vector<Record> records = drain(recorder);
  REQUIRE(records.size() == kThreads * kLaunches);
  const auto names = recorder.names_since(0);
  std::int64_t steps = 0;
  bool joined = true;
  for (const Record& record : records) {
    steps += record.span.step;
    const bool is_first = names[static_cast<std::size_t>(record.span.name)] == "first";
    joined = joined && record.span.layer == (is_first ? 0 : 1);
  }
  REQUIRE(joined);
  REQUIRE(steps == std::int64_t{kThreads} * kLaunches * (kLaunches - 1) / 2);
  REQUIRE(count(*recording, "cupti_dropped") == 0);
}

TEST_CASE("a library that is not there is named, with what to do") {
  Recorder recorder;
  const auto recording = CuptiRecording::start(recorder, {.library = "libcupti-of-nobody.so"});
  REQUIRE_FALSE(recording.ok());
  REQUIRE(recording.error().code() == ErrorCode::not_found);
  REQUIRE(has(recording.error().message(), "libcupti-of-nobody.so"));
  REQUIRE(has(recording.error().message(), "LD_LIBRARY_PATH"));
}

TEST_CASE("the real libcupti starts, or says what this machine lacks") {
  const auto api = CuptiApi::load("");
  if (!api.ok()) return skip_test(api.error().message());
  Recorder recorder;
  auto recording = CuptiRecording::start(recorder);
  const auto finding = probe();
  REQUIRE(recording.ok() == finding.ok());
  if (recording.ok()) {
    REQUIRE((*recording)->stop().ok());
    return;
  }
  std::cout << "the real libcupti here: " << recording.error().message() << "\n";
  REQUIRE(has(recording.error().message(), "CUPTI_ERROR_"));
  REQUIRE(has(recording.error().message(), "record without CUPTI"));
  REQUIRE(has(finding.error().message(), "is here, but cannot enable"));
  REQUIRE(recorder.rings().empty());
}

}  // namespace
}  // namespace sluice::cupti
