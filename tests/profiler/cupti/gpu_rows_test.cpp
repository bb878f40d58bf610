// From a GPU's records to rows of the run database: recording, ring, collector, file.

#include <catch2/catch.hpp>

#include "profiler/collect/collector.h"
#include "profiler/cupti/cupti_recording.h"
#include "tests/profiler/cupti/fake_cupti.h"
#include "tests/storage/rundb/rundb_fixture.h"

namespace sluice::cupti {
namespace {

using rundb::require_ok;

TEST_CASE("what the GPU did is in the run database, under its step, layer, GPU and stream") {
  const rundb::TempFolder folder;
  record::Recorder recorder;
  auto collector = require_ok(collect::Collector::start(
      recorder, require_ok(rundb::Writer::create(folder.file("run.db"), rundb::IfExists::refuse)),
      {}, {.records_itself = false}));
  FakeCupti fake;
  auto recording = require_ok(CuptiRecording::start(recorder, fake.api(), {}));
  {
    const auto step = recording->step_region(1);
    const auto layer = recording->layer_region(LayerId{6});
    fake.launch("_Z7softmaxPfi", 250);
  }
  fake.launch("outside", 50);
  require_ok(recording->stop());
  recorder.add_ring(4).try_push(record::StepRecord{.step = 1, .ts = 5, .dur = 50, .tokens = 64});
  require_ok(collector->stop());

  auto reader = require_ok(rundb::Reader::open(folder.file("run.db")));
  REQUIRE(rundb::table_of(*reader,
                          "SELECT gpu.name, track.name, string.value, dur, ts - submit_ts, "
                          "step_id, layer_id, device_id FROM span "
                          "JOIN string ON string.id = name_id JOIN track ON track.id = track_id "
                          "JOIN track AS gpu ON gpu.id = track.parent_id ORDER BY dur DESC") ==
          "GPU0 | stream 7 | softmax(float*, int) | 250 | 100 | 1 | 6 | NULL\n"
          "GPU0 | stream 7 | outside | 50 | 100 | NULL | NULL | NULL\n");
}

TEST_CASE("what CUPTI's recording counts and how it read the clocks is in the run database") {
  const rundb::TempFolder folder;
  record::Recorder recorder;
  auto collector = require_ok(collect::Collector::start(
      recorder, require_ok(rundb::Writer::create(folder.file("run.db"), rundb::IfExists::refuse)),
      {}, {.flush_interval = std::chrono::hours(1), .records_itself = false}));
  FakeCupti fake;
  auto recording =
      require_ok(CuptiRecording::start(recorder, fake.api(),
                                       {.flush_interval = std::chrono::hours(1),
                                        .snapshot_interval = std::chrono::milliseconds(0),
                                        .buffer_count_max = 1}));
  collector->attach(*recording);
  auto reader = require_ok(rundb::Reader::open(folder.file("run.db")));
  const auto stat = [&](const std::string& name) {
    return rundb::table_of(*reader, "SELECT value, severity FROM stat WHERE name = '" + name + "'");
  };
  require_ok(collector->flush());  // also before anything happened: that it is counted is news
  REQUIRE(stat("cupti_dropped") == "0 | loss\n");
  fake.launch("before");
  fake.deliver();
  fake.launch("dropped");  // the only buffer waits to be decoded
  require_ok(recording->flush());
  require_ok(collector->flush());
  REQUIRE(stat("cupti_dropped") == "2 | loss\n");
  fake.launch("after");
  REQUIRE(recording->flush().ok());
  require_ok(collector->flush());
  REQUIRE(stat("cupti_buffers_kept").ends_with("info\n"));  // CUPTI works with them
  require_ok(recording->stop());
  require_ok(collector->stop());
  // As counted, though it was written several times.
  for (const CuptiCount& count : recording->counts()) {
    REQUIRE(stat(count.name) ==
            std::to_string(count.value) + (count.is_loss ? " | loss\n" : " | info\n"));
  }
  std::string readings;
  for (const ClockSnapshot& snapshot : recording->clock_snapshots_since(0)) {
    readings +=
        std::to_string(snapshot.monotonic_ts) + " | " + std::to_string(snapshot.realtime_ts) + "\n";
  }
  REQUIRE(rundb::table_of(*reader,
                          "SELECT ts, realtime_ts FROM clock_snapshot WHERE clock = 'cupti'") ==
          readings);
  const auto losses = require_ok(reader->losses());
  REQUIRE(losses.size() == 2);
  REQUIRE(losses[0].name == "cupti_buffers_refused");
  REQUIRE(losses[1].name == "cupti_dropped");
  // The begin of the run's own stretch is told by its own clock.
  REQUIRE(require_ok(reader->stretch_begin()) ==
          std::stoll(
              rundb::table_of(*reader, "SELECT ts FROM clock_snapshot WHERE clock = 'monotonic'")));
}

}  // namespace
}  // namespace sluice::cupti
