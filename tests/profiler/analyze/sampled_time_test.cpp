// What planted samples say of a run.

#include "profiler/analyze/sampled_time.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "storage/rundb/writer.h"
#include "tests/storage/rundb/rundb_fixture.h"

namespace sluice::analyze {
namespace {

using rundb::require_ok;

constexpr TimeNs kMillis = 1'000'000;

// Two steps of 100 ms: forward in the first half of each, backward in the other, on track
// `compute`; a transfer over all of the first. Thread 1 computes in `product`, which `layer` calls;
// thread 2 copies. A sample each 10 ms of each.
class PlantedSamples {
 public:
  explicit PlantedSamples(const std::string& name_of_thread = "compute")
      : writer_(
            require_ok(rundb::Writer::create(folder_.file("run.db"), rundb::IfExists::refuse))) {
    rundb::Batch batch;
    batch.samples.threads = {{1, 11, name_of_thread}, {2, 12, "copies"}};
    batch.samples.functions = {
        {1, "", ""}, {2, "layer", "models.so"}, {3, "product", "math.so"}, {4, "copy", "libc.so"}};
    batch.samples.calls = {{1, -1, 2}, {2, 1, 3}, {3, -1, 4}, {4, 1, 2}, {5, -1, 1}};
    const std::int64_t compute = writer_->track_id({}, "compute", "compute", {});
    const std::int64_t drive = writer_->track_id({}, "device", "csd0 read", {});
    for (std::int64_t step = 0; step < 2; ++step) {
      const TimeNs ts = step * 100 * kMillis;
      batch.steps.push_back({.id = step, .ts = ts, .dur = 100 * kMillis, .tokens = 1});
      add_span(batch, compute, "first half", ts, 50 * kMillis);
      add_span(batch, compute, "other half", ts + 50 * kMillis, 50 * kMillis);
      for (TimeNs at = ts + 5 * kMillis; at < ts + 100 * kMillis; at += 10 * kMillis) {
        // In the other half, one in `layer` that called itself.
        batch.samples.samples.push_back({1, at, 0, at % (100 * kMillis) < 50 * kMillis ? 2 : 4});
        batch.samples.samples.push_back({2, at, 1, 3});
      }
      batch.samples.times.push_back({.thread_id = 1,
                                     .ts = ts,
                                     .dur = 100 * kMillis,
                                     .running = 80 * kMillis,
                                     .preempted = 20 * kMillis});
    }
    add_span(batch, drive, "transfer", 0, 100 * kMillis);
    batch.samples.times.push_back({.thread_id = 2,
                                   .ts = 50 * kMillis,
                                   .dur = 100 * kMillis,
                                   .running = 40 * kMillis,
                                   .waiting = 60 * kMillis});
    require_ok(writer_->append(batch));
  }

  SampledTime of(std::optional<StepRange> steps) {
    auto reader = require_ok(rundb::Reader::open(folder_.file("run.db")));
    const RunInfo info = require_ok(load_run_info(*reader));
    const auto rows = require_ok(reader->steps());
    return require_ok(sampled_time(*reader, info, rows, steps));
  }
  Status error_of(StepRange steps) {
    auto reader = require_ok(rundb::Reader::open(folder_.file("run.db")));
    const RunInfo info = require_ok(load_run_info(*reader));
    const auto time = sampled_time(*reader, info, require_ok(reader->steps()), steps);
    return time.ok() ? ok_status() : Status(time.error());
  }

 private:
  void add_span(rundb::Batch& batch, std::int64_t track, const std::string& name, TimeNs ts,
                TimeNs dur) {
    batch.spans.push_back({.track_id = track,
                           .name_id = writer_->string_id(name),
                           .submit_ts = ts,
                           .ts = ts,
                           .dur = dur});
  }

  rundb::TempFolder folder_;
  std::unique_ptr<rundb::Writer> writer_;
};

const SampledStage& stage_of(const SampledTime& time, const std::string& name) {
  for (const SampledStage& stage : time.stages) {
    if (stage.name == name) return stage;
  }
  FAIL("no stage " << name);
  return time.stages.front();
}

TEST_CASE("functions are ranked by their own samples and by those of what they called") {
  PlantedSamples planted;
  const SampledTime time = planted.of({});
  CHECK(time.why_none.empty());
  CHECK(time.functions.sample_count == 40);
  REQUIRE(time.functions.by_self.size() == 3);
  CHECK(time.functions.by_self[0].name == "copy");
  CHECK(time.functions.by_self[0].self_count == 20);
  CHECK(time.functions.by_self[1].self_count == 10);
  REQUIRE(time.functions.by_total.size() == 3);
  CHECK(time.functions.by_total[0].total_count == 20);
  // `layer` called itself in ten samples, and counts once in each.
  CHECK(time.functions.by_total[1].name == "layer");
  CHECK(time.functions.by_total[1].total_count == 20);
  CHECK(time.functions.by_total[1].self_count == 10);
}

TEST_CASE("threads' states are parts of the time in which they were there") {
  PlantedSamples planted;
  const SampledTime all = planted.of({});
  REQUIRE(all.threads.size() == 2);
  CHECK(all.threads[0].name == "compute");
  CHECK(all.threads[0].dur == 200 * kMillis);
  CHECK(all.threads[0].shares.running == Approx(0.8));
  CHECK(all.threads[0].shares.preempted == Approx(0.2));
  CHECK(all.threads[1].shares.waiting == Approx(0.6));
  CHECK(all.threads[1].sample_count == 20);
  CHECK(all.running_ns == 200 * kMillis);

  // The second thread's row lies half in each step.
  const SampledTime second = planted.of(StepRange{1, 1});
  REQUIRE(second.threads.size() == 2);
  CHECK(second.dur == 100 * kMillis);
  CHECK(second.threads[1].dur == 50 * kMillis);
  CHECK(second.threads[1].shares.running == Approx(0.4));
  CHECK(second.functions.sample_count == 20);
  for (const SampledThread& thread : second.threads) {
    CHECK(thread.shares.running + thread.shares.preempted + thread.shares.waiting == Approx(1));
  }
}

TEST_CASE("an operation is joined with its threads where their name says so, else by time") {
  PlantedSamples planted;
  const SampledTime time = planted.of({});
  const SampledStage& first = stage_of(time, "first half");
  CHECK(first.threads == "compute");
  CHECK(first.functions.sample_count == 10);
  CHECK(first.functions.by_self.front().name == "product");
  CHECK(stage_of(time, "other half").functions.by_self.front().name == "layer");
  const SampledStage& transfer = stage_of(time, "transfer");
  CHECK(transfer.threads.empty());
  CHECK(transfer.functions.sample_count == 20);

  PlantedSamples of_another_name("python");
  const SampledTime by_time = of_another_name.of({});
  CHECK(stage_of(by_time, "first half").threads.empty());
  CHECK(stage_of(by_time, "first half").functions.sample_count == 20);
}

TEST_CASE("the uncertainty falls with the number of samples and is never nothing") {
  SampledFunctions few{.sample_count = 97};
  CHECK(few.uncertainty(48) == Approx(0.098).margin(0.002));  // plus or minus 10 points
  CHECK(few.uncertainty(0) > 0.01);
  CHECK(few.uncertainty(97) > 0.01);
  SampledFunctions many{.sample_count = 9700};
  CHECK(many.uncertainty(4850) == Approx(0.00995).margin(0.0002));
  CHECK(SampledFunctions{}.uncertainty(0) == 1);
}

TEST_CASE("a run without samples says so, and steps that it has not are an error") {
  const rundb::TempFolder folder;
  auto writer = require_ok(rundb::Writer::create(folder.file("run.db"), rundb::IfExists::refuse));
  require_ok(writer->append(rundb::whole_step(*writer, 0, 3)));
  auto reader = require_ok(rundb::Reader::open(folder.file("run.db")));
  const RunInfo info = require_ok(load_run_info(*reader));
  const SampledTime time = require_ok(sampled_time(*reader, info, require_ok(reader->steps()), {}));
  CHECK_THAT(time.why_none, Catch::Matchers::StartsWith("the run was not sampled; "));
  CHECK(time.threads.empty());

  PlantedSamples planted;
  const Status status = planted.error_of({1, 7});
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().message() == "the run has steps 1 to 2, not 2 to 8");
}

}  // namespace
}  // namespace sluice::analyze
