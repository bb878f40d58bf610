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

}  // namespace
}  // namespace sluice::cupti
