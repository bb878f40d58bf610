// The tables of the processor samples, which a file has only when it was given some.

#include <limits>
#include <string_view>

#include "storage/rundb/detail/connection.h"
#include "storage/rundb/sample_reader.h"
#include "tests/storage/rundb/rundb_fixture.h"

namespace sluice::rundb {
namespace {

// A thread that ran for a while, and samples in `f`, called by `main`.
Batch batch_of(TimeNs ts) {
  Batch batch;
  batch.samples.threads = {{1, 4711, "compute"}};
  batch.samples.functions = {{1, "main", "program"}, {2, "f", "library.so"}};
  batch.samples.calls = {{1, -1, 1}, {2, 1, 2}};
  batch.samples.samples = {{1, ts + 1, 0, 2}, {1, ts + 2, 3, 2}};
  batch.samples.times = {
      {.thread_id = 1, .ts = ts, .dur = 10, .running = 6, .preempted = 1, .waiting = 3}};
  return batch;
}

TEST_CASE("samples come back as they were written; a file without them has no tables") {
  const TempFolder folder;
  auto writer = require_ok(Writer::create(folder.file("run.db"), IfExists::refuse));
  auto reader = require_ok(Reader::open(folder.file("run.db")));
  SampleReader samples(*reader);
  CHECK_FALSE(require_ok(samples.has_samples()));
  require_ok(writer->append({}));
  CHECK_FALSE(require_ok(samples.has_samples()));
  require_ok(writer->append(batch_of(100)));
  REQUIRE(require_ok(samples.has_samples()));
  const auto calls = require_ok(samples.calls());
  REQUIRE(calls.size() == 2);
  CHECK(calls[0].caller_id == -1);
  CHECK(calls[1].caller_id == calls[0].id);
  CHECK(require_ok(samples.functions())[1].name == "f");
  CHECK(require_ok(samples.threads())[0].tid == 4711);
  CHECK(require_ok(samples.samples_between(101, 102)).size() == 1);
  CHECK(require_ok(samples.samples_between(0, 1000)).size() == 2);
  CHECK(require_ok(samples.times_between(0, 100)).empty());
  CHECK(require_ok(samples.times_between(109, 200)).size() == 1);
  CHECK(require_ok(samples.times_between(110, 200)).empty());
}

TEST_CASE("a thread's new name takes the place of its old one") {
  const TempFolder folder;
  auto writer = require_ok(Writer::create(folder.file("run.db"), IfExists::refuse));
  require_ok(writer->append(batch_of(100)));
  Batch renamed;
  renamed.samples.threads = {{1, 4711, "host"}};
  require_ok(writer->append(renamed));
  auto reader = require_ok(Reader::open(folder.file("run.db")));
  const auto threads = require_ok(SampleReader(*reader).threads());
  REQUIRE(threads.size() == 1);
  CHECK(threads[0].name == "host");
}

TEST_CASE("a run that goes on counts its ids on from those of the file") {
  const TempFolder folder;
  {
    auto writer = require_ok(Writer::create(folder.file("run.db"), IfExists::refuse));
    require_ok(writer->append(batch_of(100)));
    require_ok(writer->close());
  }
  auto writer = require_ok(Writer::open_append(folder.file("run.db"), 0));
  require_ok(writer->append(batch_of(1000)));
  auto reader = require_ok(Reader::open(folder.file("run.db")));
  CHECK(table_of(*reader, "SELECT id, tid FROM sampled_thread") == "1 | 4711\n2 | 4711\n");
  CHECK(table_of(*reader, "SELECT id, caller_id, function_id FROM call") ==
        "1 | NULL | 1\n2 | 1 | 2\n3 | NULL | 3\n4 | 3 | 4\n");
  CHECK(table_of(*reader, "SELECT thread_id, ts, cpu, call_id FROM call_sample") ==
        "1 | 101 | 0 | 2\n1 | 102 | 3 | 2\n2 | 1001 | 0 | 4\n2 | 1002 | 3 | 4\n");
}

TEST_CASE("samples before the steps that are kept in full are removed with them") {
  const TempFolder folder;
  auto writer = require_ok(Writer::create(folder.file("run.db"), IfExists::refuse));
  writer->set_retention({.full_steps = 2});
  for (std::int64_t step = 0; step < 10; ++step) {
    Batch batch = batch_of(step * 1000);
    if (step > 0)
      batch.samples.threads = {}, batch.samples.functions = {}, batch.samples.calls = {};
    batch.steps.push_back({.id = step, .ts = step * 1000, .dur = 900, .tokens = 1});
    require_ok(writer->append(batch));
  }
  auto reader = require_ok(Reader::open(folder.file("run.db")));
  CHECK(table_of(*reader, "SELECT min(ts) FROM call_sample") == "8001\n");
  CHECK(table_of(*reader, "SELECT min(ts) FROM processor_time") == "8000\n");
}

TEST_CASE("tables of samples that are not Sluice's own are refused, and the rest is read") {
  for (const char* sql :
       {"CREATE VIEW call_sample AS SELECT 1", "CREATE TABLE call (id INTEGER PRIMARY KEY)"}) {
    const TempFolder folder;
    require_ok(require_ok(Writer::create(folder.file("run.db"), IfExists::refuse))->close());
    {
      auto connection = require_ok(
          detail::Connection::open(folder.file("run.db"), detail::Connection::Mode::write));
      require_ok(connection.execute(sql));
    }
    auto reader = require_ok(Reader::open(folder.file("run.db")));
    const auto found = SampleReader(*reader).has_samples();
    REQUIRE_FALSE(found.ok());
    CHECK(found.error().code() == ErrorCode::corrupt);
    require_ok(reader->steps());
    auto writer = require_ok(Writer::open_append(folder.file("run.db"), 0));
    CHECK_FALSE(writer->append(batch_of(100)).ok());
  }
}

TEST_CASE("rows of samples that no run has are refused") {
  for (const char* sql :
       {"UPDATE call SET caller_id = 2 WHERE id = 1", "UPDATE processor_time SET running = dur + 1",
        "UPDATE call_sample SET ts = 9223372036854775807"}) {
    const TempFolder folder;
    {
      auto writer = require_ok(Writer::create(folder.file("run.db"), IfExists::refuse));
      require_ok(writer->append(batch_of(100)));
      require_ok(writer->close());
    }
    {
      auto connection = require_ok(
          detail::Connection::open(folder.file("run.db"), detail::Connection::Mode::write));
      require_ok(connection.execute(sql));
    }
    INFO(sql);
    auto reader = require_ok(Reader::open(folder.file("run.db")));
    SampleReader samples(*reader);
    const bool is_read = samples.calls().ok() && samples.times_between(0, 1000).ok() &&
                         samples.samples_between(0, std::numeric_limits<TimeNs>::max()).ok();
    if (std::string_view(sql).find("call_sample") == std::string_view::npos) CHECK_FALSE(is_read);
  }
}

}  // namespace
}  // namespace sluice::rundb
