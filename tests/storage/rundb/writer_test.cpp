#include "storage/rundb/writer.h"

#include <array>
#include <chrono>
#include <cmath>
#include <iostream>
#include <limits>

#include "storage/rundb/reader.h"
#include "storage/rundb/span_reader.h"
#include "tests/made_stages.h"
#include "tests/storage/rundb/rundb_fixture.h"

namespace sluice::rundb {
namespace {

// Two links in a row, two devices on them; csd1 has a kernel track, too.
struct TwoDevices {
  std::int64_t read0;
  std::int64_t read1;
  std::int64_t write1;
};
TwoDevices write_two_devices(Writer& writer) {
  require_ok(writer.write_facts(
      {.meta = {{"clock", "emulated"}, {"method", "csd"}},
       .devices = {{.id = 0, .name = "csd0", .kind = "csd", .memory_bytes = 1 << 20}},
       .links = {{.id = 0, .name = "host", .read_bytes_per_s = 3e9, .latency_ns = 5000},
                 {.id = 1, .name = "csd0.drive", .full_duplex = false},
                 {.id = 2, .name = "csd1.drive"}},
       .stages = made_stages(writer),
       .subgroups = {{.id = 0, .first = 0, .count = 100, .device_id = 0},
                     {.id = 1, .first = 100, .count = 60, .device_id = -1}}}));
  const auto track = [&writer](const char* name, std::int64_t drive, Direction direction) {
    return writer.track_id(std::nullopt, "link", name,
                           std::array{TrackLink{0, direction}, TrackLink{drive, direction}});
  };
  return {track("csd0 read", 1, Direction::read), track("csd1 read", 2, Direction::read),
          track("csd1 write", 2, Direction::write)};
}

TEST_CASE("what is written is what is read") {
  const TempFolder folder;
  auto writer = require_ok(Writer::create(folder.file("run.db"), IfExists::refuse));
  write_two_devices(*writer);
  Batch batch;
  batch.spans = {{.track_id = writer->track_id(std::nullopt, "compute", "gpu"),
                  .name_id = writer->string_id("forward"),
                  .submit_ts = 5,
                  .ts = 7,
                  .dur = 11,
                  .step_id = 3,
                  .layer_id = 2,
                  .status = SpanStatus::failed}};
  batch.steps = {{.id = 3,
                  .ts = 1,
                  .dur = 20,
                  .loss = 2.5,
                  .grad_norm = 0.5,
                  .loss_scale = 1024,
                  .lr = 0.25,
                  .tokens = 64,
                  .skipped = true}};
  batch.counters = {{writer->track_id(std::nullopt, "counter", "queue depth"), 9, 4.5}};
  batch.validations = {
      {.ts = 30, .step_id = 3, .loss = 2.25, .tokens = 512, .accuracy = 0.75},
      {.ts = 40, .step_id = 5, .loss = std::numeric_limits<double>::quiet_NaN(), .tokens = 512}};
  batch.stats = {{"lost", Severity::loss, 2, "why"}};
  require_ok(writer->append(batch));
  batch = {};
  batch.stats = {{"lost", Severity::loss, 5, "why"}};
  require_ok(writer->append(batch));
  require_ok(writer->close());

  auto reader = require_ok(Reader::open(folder.file("run.db")));
  REQUIRE(
      table_of(*reader,
               "SELECT track.kind, track.name, string.value, submit_ts, ts, dur, step_id, "
               "subgroup_id, device_id, layer_id, bytes, padding_bytes, span.parent_id, status "
               "FROM span JOIN track ON track.id = track_id JOIN string ON string.id = name_id") ==
      "compute | gpu | forward | 5 | 7 | 11 | 3 | NULL | NULL | 2 | 0 | 0 | NULL | 1\n");
  REQUIRE(table_of(*reader, "SELECT * FROM step") ==
          "3 | 1 | 20 | 2.5 | 0.5 | 1024.0 | 0.25 | 64 | 1\n");
  REQUIRE(table_of(*reader,
                   "SELECT track.name, ts, value FROM counter JOIN track ON track.id = track_id") ==
          "queue depth | 9 | 4.5\n");
  REQUIRE(table_of(*reader, "SELECT * FROM validation") ==
          "30 | 3 | 2.25 | 512 | 0.75\n40 | 5 | NULL | 512 | NULL\n");
  const auto validations = require_ok(reader->validations());
  REQUIRE(validations.size() == 2);
  CHECK(validations[0].step_id == 3);
  CHECK(validations[0].loss == 2.25);
  CHECK(std::isnan(validations[1].loss));
  CHECK(validations[0].accuracy == 0.75);
  CHECK(std::isnan(validations[1].accuracy));
  REQUIRE(table_of(*reader, "SELECT * FROM stat") == "lost | loss | 7 | why\n");
  REQUIRE(table_of(*reader, "SELECT * FROM device") == "0 | csd0 | csd | 1048576 | 0\n");
  REQUIRE(table_of(*reader, "SELECT * FROM link WHERE id < 2") ==
          "0 | host | 3000000000.0 | 0.0 | 5000 | full\n1 | csd0.drive | 0.0 | 0.0 | 0 | half\n");
  REQUIRE(table_of(*reader, "SELECT * FROM subgroup") == "0 | 0 | 100 | 0\n1 | 100 | 60 | NULL\n");
  REQUIRE(table_of(*reader, "SELECT clock FROM clock_snapshot") == "monotonic\n");
  REQUIRE(table_of(*reader, "SELECT key, value FROM meta WHERE key IN ('clock', 'method')") ==
          "clock | emulated\nmethod | csd\n");
}

TEST_CASE("spans are found by when they ended, without those that failed") {
  const TempFolder folder;
  auto writer = require_ok(Writer::create(folder.file("run.db"), IfExists::refuse));
  const std::int64_t track = writer->track_id(std::nullopt, "compute", "gpu");
  const std::int64_t forward = writer->string_id("forward");
  Batch batch;
  const auto add = [&](TimeNs ts, TimeNs dur, SpanStatus status) {
    batch.spans.push_back(
        {.track_id = track, .name_id = forward, .ts = ts, .dur = dur, .status = status});
  };
  add(0, 10, SpanStatus::ok);
  add(5, 10, SpanStatus::ok);
  add(5, 10, SpanStatus::failed);
  add(15, 5, SpanStatus::ok);
  add(15, 6, SpanStatus::ok);
  require_ok(writer->append(batch));
  require_ok(writer->close());
  auto reader = require_ok(Reader::open(folder.file("run.db")));
  const std::vector<NamedSpan> spans = require_ok(SpanReader(*reader).spans_ended(10, 20));
  REQUIRE(spans.size() == 2);
  CHECK(spans[0].row.ts == 5);
  CHECK(spans[1].row.ts == 15);
  CHECK(spans[0].name == "forward");
  CHECK(spans[0].row.device_id == -1);
  CHECK(require_ok(reader->stretch_begin()) > 0);
}

TEST_CASE("a loss that is not a number is NULL in the table and not a number when read") {
  const TempFolder folder;
  auto writer = require_ok(Writer::create(folder.file("run.db"), IfExists::refuse));
  Batch batch;
  batch.steps = {{.id = 1,
                  .loss = std::numeric_limits<double>::quiet_NaN(),
                  .grad_norm = std::numeric_limits<double>::infinity()}};
  batch.counters = {{1, 1, std::numeric_limits<double>::quiet_NaN()}};
  require_ok(writer->append(batch));
  auto reader = require_ok(Reader::open(folder.file("run.db")));
  REQUIRE(table_of(*reader, "SELECT loss IS NULL FROM step") == "1\n");
  const auto steps = require_ok(reader->steps());
  REQUIRE(std::isnan(steps[0].loss));
  REQUIRE(std::isinf(steps[0].grad_norm));
}

TEST_CASE("a step divides into phases, and an update that goes on counts in the step that waits") {
  const TempFolder folder;
  auto writer = require_ok(Writer::create(folder.file("run.db"), IfExists::refuse));
  require_ok(writer->write_facts({.stages = made_stages(*writer)}));
  const std::int64_t track = writer->track_id(std::nullopt, "host", "host");
  Batch batch;
  const auto ended = [&](const char* name, std::int64_t step, TimeNs end) {
    batch.spans.push_back({.track_id = track,
                           .name_id = writer->string_id(name),
                           .ts = end - 1,
                           .dur = 1,
                           .step_id = step});
  };
  // All of its update inside the step.
  batch.steps.push_back({.id = 0, .ts = 100, .dur = 100});
  for (const TimeNs layer : {110, 120}) ended("forward", 0, layer);
  for (const TimeNs layer : {130, 140}) ended("backward", 0, layer);
  ended("gradient_down", 0, 150);
  ended("parameters_up", 0, 180);
  // Its update goes on in the next step, which ends forward behind it.
  batch.steps.push_back({.id = 1, .ts = 200, .dur = 50});
  ended("forward", 1, 220);
  ended("gradient_down", 1, 250);
  ended("parameters_in", 1, 270);
  ended("state_write", 1, 290);
  batch.steps.push_back({.id = 2, .ts = 250, .dur = 60});
  ended("forward", 2, 275);
  ended("stage_gradient", 2, 310);
  require_ok(writer->append(batch));
  auto reader = require_ok(Reader::open(folder.file("run.db")));
  REQUIRE(table_of(*reader, "SELECT * FROM step_phase ORDER BY step_id") ==
          "0 | 20 | 30 | 50\n"
          "1 | 20 | 30 | 0\n"
          "2 | 5 | 35 | 20\n");
}

TEST_CASE("bytes by link are exactly what the spans say, over every link of the route") {
  const TempFolder folder;
  auto writer = require_ok(Writer::create(folder.file("run.db"), IfExists::refuse));
  const auto [read0, read1, write1] = write_two_devices(*writer);
  const std::int64_t gpu = writer->track_id(std::nullopt, "compute", "gpu");
  const std::int64_t read = writer->string_id("read");
  const std::int64_t write = writer->string_id("write");
  Batch batch;
  const auto span = [&](std::int64_t track, std::int64_t name, std::int64_t step, TimeNs dur,
                        std::int64_t bytes, std::int64_t padding) {
    batch.spans.push_back({.track_id = track,
                           .name_id = name,
                           .dur = dur,
                           .step_id = step,
                           .bytes = bytes,
                           .padding_bytes = padding});
  };
  constexpr std::int64_t kBig = (std::int64_t{1} << 53) + 1;  // a double could not hold it
  span(read0, read, 0, 10, 1000, 24);
  span(read1, read, 0, 30, kBig, 1);
  span(write1, write, 0, 5, 7, 2);
  span(read0, read, 1, 20, 500, 0);
  span(read0, read, 2, 20, 9'000, 0);  // of a step that has not ended
  span(read0, read, -1, 1, 3, 0);      // of no step
  span(gpu, writer->string_id("forward"), 0, 100, 0, 0);
  batch.steps = {{.id = 0}, {.id = 1}};
  require_ok(writer->append(batch));

  auto reader = require_ok(Reader::open(folder.file("run.db")));
  REQUIRE(table_of(*reader, "SELECT * FROM link_bytes ORDER BY step_id, link, direction") ==
          "NULL | csd0.drive | read | 3 | 0\n"
          "NULL | host | read | 3 | 0\n"
          "0 | csd0.drive | read | 1000 | 24\n"
          "0 | csd1.drive | read | 9007199254740993 | 1\n"
          "0 | csd1.drive | write | 7 | 2\n"
          "0 | host | read | 9007199254741993 | 25\n"
          "0 | host | write | 7 | 2\n"
          "1 | csd0.drive | read | 500 | 0\n"
          "1 | host | read | 500 | 0\n"
          "2 | csd0.drive | read | 9000 | 0\n"
          "2 | host | read | 9000 | 0\n");
  REQUIRE(table_of(*reader, "SELECT * FROM step_breakdown ORDER BY step_id, name") ==
          "NULL | read | 1 | 1 | 3 | 0\n"
          "0 | forward | 1 | 100 | 0 | 0\n"
          "0 | read | 2 | 40 | 9007199254741993 | 25\n"
          "0 | write | 1 | 5 | 7 | 2\n"
          "1 | read | 1 | 20 | 500 | 0\n"
          "2 | read | 1 | 20 | 9000 | 0\n");
  REQUIRE(table_of(*reader, "SELECT track, name, dur FROM kernel") == "gpu | forward | 100\n");
  REQUIRE(
      table_of(*reader, "SELECT count(*), sum(bytes = 7 AND bytes_per_s = 1.4e9) FROM transfer") ==
      "6 | 1\n");

  const auto links = require_ok(reader->link_totals());
  REQUIRE(links.size() == 5);
  REQUIRE(links[0].link == "csd0.drive");
  REQUIRE(links[0].direction == Direction::read);
  REQUIRE(links[0].bytes == 1000 + 500 + 9000 + 3);
  REQUIRE(links[0].padding_bytes == 24);
  REQUIRE(links[0].bytes_per_step_mean == 750);  // steps 0 and 1 ended
  REQUIRE(links[4].link == "host");
  REQUIRE(links[4].direction == Direction::write);

  const auto totals = require_ok(reader->span_totals());
  REQUIRE(totals.size() == 3);
  REQUIRE(totals[0].name == "forward");
  REQUIRE(totals[1].name == "read");
  REQUIRE(totals[1].count == 5);
  REQUIRE(totals[1].dur_total == 81);
  REQUIRE(totals[1].dur_mean == 16);
  REQUIRE(totals[1].dur_max == 30);
}

TEST_CASE("the steps after one come in order, and there may be none") {
  const TempFolder folder;
  auto writer = require_ok(Writer::create(folder.file("run.db"), IfExists::refuse));
  auto reader = require_ok(Reader::open(folder.file("run.db")));
  REQUIRE(require_ok(reader->steps()).empty());
  for (int step = 0; step < 5; ++step) require_ok(writer->append(whole_step(*writer, step, 1)));
  const auto last = require_ok(reader->steps_after(2));
  REQUIRE(last.size() == 2);
  REQUIRE(last[0].id == 3);
  REQUIRE(last[1].id == 4);
  REQUIRE(require_ok(reader->steps_after(-1)).size() == 5);
  REQUIRE(require_ok(reader->steps_after(4)).empty());
}

TEST_CASE("a resumed run goes on in the same file, with the same names and tracks") {
  const TempFolder folder;
  const std::string path = folder.file("run.db");
  auto first = require_ok(Writer::create(path, IfExists::refuse));
  for (int step = 0; step < 5; ++step) require_ok(first->append(whole_step(*first, step, 3)));
  require_ok(
      first->append({.validations = {{.step_id = 2, .loss = 3}, {.step_id = 4, .loss = 2}}}));
  const std::int64_t track = first->track_id(std::nullopt, "link", "csd0 read");
  require_ok(first->close());
  first.reset();

  // Steps 3 and 4 had run, but the last commit was that of step 2.
  auto second = require_ok(Writer::open_append(path, 3));
  REQUIRE(second->track_id(std::nullopt, "link", "csd0 read") == track);
  require_ok(second->append(whole_step(*second, 3, 3)));
  require_ok(second->close());

  auto reader = require_ok(Reader::open(path));
  REQUIRE(table_of(*reader, "SELECT id FROM step") == "0\n1\n2\n3\n");
  REQUIRE(table_of(*reader, "SELECT step_id FROM validation") == "2\n");  // 4 runs again
  REQUIRE(table_of(*reader, "SELECT step_id, count(*) FROM span GROUP BY step_id") ==
          "NULL | 6\n0 | 3\n1 | 3\n2 | 3\n3 | 3\n");
  REQUIRE(table_of(*reader, "SELECT count(*) FROM string") == "1\n");
  REQUIRE(table_of(*reader, "SELECT count(*) FROM track") == "1\n");
  REQUIRE(table_of(*reader, "SELECT count(*) FROM clock_snapshot") == "2\n");
  REQUIRE(table_of(*reader, "SELECT name, severity, value FROM stat") ==
          "steps_redone | info | 2\n");
  REQUIRE(require_ok(reader->losses()).empty());
}

TEST_CASE("committed steps without rows are counted as lost, each once") {
  const TempFolder folder;
  const std::string path = folder.file("run.db");
  auto writer = require_ok(Writer::create(path, IfExists::refuse));
  require_ok(writer->append(whole_step(*writer, 0, 3)));
  require_ok(writer->close());
  // Steps 1 to 3 were committed, and the run was killed before their batch.
  for (int resume = 0; resume < 2; ++resume) {
    writer.reset();
    writer = require_ok(Writer::open_append(path, 4));
    require_ok(writer->close());
  }
  auto reader = require_ok(Reader::open(path));
  REQUIRE(table_of(*reader, "SELECT name, severity, value FROM stat") ==
          "steps_not_recorded | loss | 3\n");
}

TEST_CASE("a finished run is one file") {
  const TempFolder folder;
  auto writer = require_ok(Writer::create(folder.file("run.db"), IfExists::refuse));
  require_ok(writer->append(whole_step(*writer, 0, 3)));
  require_ok(writer->close());
  writer.reset();
  for (const char* suffix : {"-wal", "-shm", "-journal", "-writer"})
    REQUIRE_FALSE(std::filesystem::exists(folder.file("run.db") + suffix));
}

TEST_CASE("a reader that is looking on does not keep a run from ending") {
  const TempFolder folder;
  auto writer = require_ok(Writer::create(folder.file("run.db"), IfExists::refuse));
  require_ok(writer->append(whole_step(*writer, 0, 3)));
  auto reader = require_ok(Reader::open(folder.file("run.db")));
  const auto snapshot = require_ok(reader->snapshot());
  require_ok(writer->append(whole_step(*writer, 1, 3)));
  require_ok(writer->close());
  REQUIRE(require_ok(reader->steps()).size() == 1);  // its snapshot is older
  auto later = require_ok(Reader::open(folder.file("run.db")));
  REQUIRE(require_ok(later->steps()).size() == 2);
}

// Run with: storage_rundb_test "[.speed]"
TEST_CASE("speed of the writer", "[.speed]") {
  const TempFolder folder;
  auto writer = require_ok(Writer::create(folder.file("run.db"), IfExists::refuse));
  constexpr std::int64_t kBatches = 100;
  constexpr std::int64_t kSpans = 10'000;
  std::chrono::nanoseconds writing{0};
  for (std::int64_t i = 0; i < kBatches; ++i) {
    const Batch batch = whole_step(*writer, i, kSpans);
    const auto start = std::chrono::steady_clock::now();
    require_ok(writer->append(batch));
    writing += std::chrono::steady_clock::now() - start;
  }
  require_ok(writer->close());
  std::cout << "append: " << kBatches * kSpans * 1e9 / static_cast<double>(writing.count())
            << " rows/s, "
            << static_cast<double>(std::filesystem::file_size(folder.file("run.db"))) /
                   (kBatches * kSpans)
            << " bytes/row\n";
}

// A step of 1000 ns with 50 spans, a flow and a counter each.
void append_step(Writer& writer, std::int64_t step) {
  Batch batch;
  const std::int64_t track = writer.track_id({}, "host", "cpu");
  const std::int64_t name = writer.string_id("work");
  const std::int64_t first = writer.next_span_id();
  for (std::int64_t i = 0; i < 50; ++i) {
    batch.spans.push_back({.id = first + i,
                           .track_id = track,
                           .name_id = name,
                           .ts = step * 1000 + i * 20,
                           .dur = 20,
                           .step_id = step});
    if (i > 0) batch.flows.push_back({first + i - 1, first + i});
  }
  batch.counters.push_back({track, step * 1000, 1.0});
  batch.steps.push_back({.id = step, .ts = step * 1000, .dur = 1000});
  require_ok(writer.append(batch));
}

TEST_CASE("the last steps are kept in full, of the others the rows of step") {
  const TempFolder folder;
  {
    auto writer = require_ok(Writer::create(folder.file("run.db"), IfExists::refuse));
    writer->set_retention({.full_steps = 20});
    for (std::int64_t step = 0; step < 100; ++step) append_step(*writer, step);
    require_ok(writer->close());
  }
  {  // A resumed run goes on keeping as many.
    auto writer = require_ok(Writer::open_append(folder.file("run.db"), 100));
    writer->set_retention({.full_steps = 20});
    for (std::int64_t step = 100; step < 200; ++step) append_step(*writer, step);
    require_ok(writer->close());
  }
  auto reader = require_ok(Reader::open(folder.file("run.db")));
  REQUIRE(table_of(*reader, "SELECT count(*) FROM step") == "200\n");
  const auto full = std::stoll(table_of(*reader, "SELECT count(DISTINCT step_id) FROM span"));
  REQUIRE(full >= 20);
  REQUIRE(full <= 23);  // a tenth more, and one that spans touch
  REQUIRE(table_of(*reader, "SELECT max(step_id), count(*) % 50 FROM span") == "199 | 0\n");
  REQUIRE(std::stoll(table_of(*reader, "SELECT value FROM stat WHERE name = 'steps_thinned'")) >=
          200 - full);
  // What is left is whole: runs name spans that are there, flows join such.
  REQUIRE(table_of(*reader,
                   "SELECT (SELECT sum(last_id - first_id + 1) FROM span_run) - count(*), "
                   "(SELECT count(*) FROM flow WHERE to_span NOT IN (SELECT id FROM span)) "
                   "FROM span") == "0 | 0\n");
  REQUIRE(table_of(*reader, "PRAGMA integrity_check") == "ok\n");
}

TEST_CASE("a file keeps the size that it may have, however long the run is") {
  const TempFolder folder;
  constexpr std::int64_t kMost = 400'000;
  auto writer = require_ok(Writer::create(folder.file("run.db"), IfExists::refuse));
  writer->set_retention({.size_bytes = kMost});
  for (std::int64_t step = 0; step < 1000; ++step) append_step(*writer, step);
  require_ok(writer->close());
  REQUIRE(static_cast<std::int64_t>(std::filesystem::file_size(folder.file("run.db"))) <= kMost);
  auto reader = require_ok(Reader::open(folder.file("run.db")));
  REQUIRE(table_of(*reader, "SELECT count(*) FROM step") == "1000\n");
  REQUIRE(std::stoll(table_of(*reader, "SELECT count(DISTINCT step_id) FROM span")) > 10);
}

TEST_CASE("lateness adds up from its step on, and that of steps that run again is forgotten") {
  const TempFolder folder;
  {
    auto writer = require_ok(Writer::create(folder.file("run.db"), IfExists::refuse));
    for (const char* stage : {"update", "state_read"}) writer->string_id(stage);
    for (std::int64_t step = 0; step < 10; ++step) append_step(*writer, step);
    require_ok(writer->append(
        {.lateness = {{0, "update", 10, 1, 1000, 50}, {0, "state_read", 5, 0, 700, 0}}}));
    require_ok(writer->append(
        {.lateness = {{0, "update", 20, 2, 3000, 70}, {7, "update", 9, 9, 100, 100}}}));
    require_ok(writer->close());
  }
  require_ok(require_ok(Writer::open_append(folder.file("run.db"), 5))->close());
  auto reader = require_ok(Reader::open(folder.file("run.db")));
  const std::vector<LatenessRow> rows = require_ok(reader->lateness());
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].step_id == 0);
  CHECK(rows[0].stage == "update");
  CHECK(rows[0].operations == 30);
  CHECK(rows[0].late == 3);
  CHECK(rows[0].modelled_ns == 4000);
  CHECK(rows[0].late_ns == 120);
  CHECK(rows[1].stage == "state_read");
  CHECK(rows[1].operations == 5);
}

TEST_CASE("a knob keeps its id, and what was changed in steps that run again is forgotten") {
  const TempFolder folder;
  {
    auto writer = require_ok(Writer::create(folder.file("run.db"), IfExists::refuse));
    require_ok(writer->write_facts({.knobs = {{.name = "buffers"}, {.name = "density"}}}));
    for (std::int64_t step = 0; step < 10; ++step) append_step(*writer, step);
    require_ok(writer->append({.knob_changes = {{1, 3, "density", "1", "0.1", "settings"},
                                                {2, 8, "buffers", "3", "4", "user"}},
                               .verdicts = {{3, "read", 1}, {8, "read", 1}}}));
    require_ok(writer->close());
  }
  auto writer = require_ok(Writer::open_append(folder.file("run.db"), 5));
  // Another Sluice may list them otherwise.
  require_ok(writer->write_facts({.knobs = {{.name = "density", .maximum = 1}, {.name = "wire"}}}));
  require_ok(writer->close());
  auto reader = require_ok(Reader::open(folder.file("run.db")));
  const std::vector<KnobRow> knobs = require_ok(reader->knobs());
  REQUIRE(knobs.size() == 3);
  CHECK(knobs[1].name == "density");
  CHECK(knobs[1].maximum == 1);
  CHECK(std::isnan(knobs[1].minimum));
  const std::vector<KnobChangeRow> changes = require_ok(reader->knob_changes());
  REQUIRE(changes.size() == 1);
  CHECK(changes[0].knob == "density");
  CHECK(changes[0].new_value == "0.1");
  CHECK(changes[0].who == "settings");
  const std::vector<VerdictRow> verdicts = require_ok(reader->verdicts(0));
  REQUIRE(verdicts.size() == 1);
  CHECK(verdicts[0].step_id == 3);
}

}  // namespace
}  // namespace sluice::rundb
