#include "profiler/collect/collector.h"

#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <thread>

#include "storage/rundb/reader.h"
#include "storage/rundb/span_reader.h"
#include "tests/skip.h"
#include "tests/storage/rundb/rundb_fixture.h"

namespace sluice::collect {
namespace {

using record::CounterRecord;
using record::kNoTrack;
using record::NameId;
using record::Recorder;
using record::Ring;
using record::SpanRecord;
using record::SpanStatus;
using record::StepRecord;
using record::TrackId;
using rundb::IfExists;
using rundb::Reader;
using rundb::require_ok;
using rundb::table_of;
using rundb::TempFolder;
using rundb::Writer;

// Long enough that nothing is flushed unless a test asks.
// What the recorder says of itself is left out where rows are counted.
constexpr CollectorOptions kOnlyWhenAsked{.flush_interval = std::chrono::hours(1),
                                          .records_itself = false};

std::unique_ptr<Collector> start(Recorder& recorder, const std::string& path,
                                 const RunFacts& facts = {},
                                 const CollectorOptions& options = kOnlyWhenAsked) {
  return require_ok(Collector::start(recorder, require_ok(Writer::create(path, IfExists::refuse)),
                                     facts, options));
}

TEST_CASE("changes of knobs and verdicts are written with the next batch, and at the end") {
  const TempFolder folder;
  Recorder recorder;
  recorder.set_level(record::Level::steps);
  auto collector = start(recorder, folder.file("run.db"),
                         {.knobs = {{.name = "buffers", .type = "integer", .unit = "a device"}}});
  const std::vector<rundb::KnobChangeRow> changes = {{50, 7, "buffers", "3", "4", "settings"}};
  collector->add(changes);
  require_ok(collector->flush());
  const auto reader = require_ok(Reader::open(folder.file("run.db")));
  CHECK(table_of(*reader,
                 "SELECT ts, step_id, name, old, new, who FROM knob_change "
                 "JOIN knob ON knob.id = knob_id") == "50 | 7 | buffers | 3 | 4 | settings\n");
  const std::vector<rundb::VerdictRow> verdicts = {{7, "compute", 0.75}, {7, "read", 0.25}};
  collector->add(verdicts);
  require_ok(collector->flush());
  require_ok(collector->flush());  // once is enough
  CHECK(table_of(*reader, "SELECT count(*), sum(share) FROM verdict") == "2 | 1.0\n");
  const std::vector<rundb::VerdictRow> last = {{8, "compute", 1}};
  collector->add(last);
  require_ok(collector->stop());
  CHECK(table_of(*reader, "SELECT * FROM verdict WHERE step_id = 8") == "8 | compute | 1.0\n");
}

TEST_CASE("a trace goes in, tables come out") {
  const TempFolder folder;
  Recorder recorder;
  const TrackId csd0 = recorder.add_track(kNoTrack, "device", "csd0");
  const TrackId reads = recorder.add_track(
      csd0, "link", "csd0 read", std::array{record::TrackLink{0, record::LinkDirection::read}});
  const TrackId depth = recorder.add_track(kNoTrack, "counter", "queue depth");
  auto collector = start(recorder, folder.file("run.db"),
                         {.meta = {{"method", "csd"}},
                          .devices = {{.id = 0, .name = "csd0", .kind = "csd"}},
                          .links = {{.id = 0, .name = "host"}},
                          .subgroups = {{.id = 0, .first = 0, .count = 8, .device_id = 0}}});
  Ring& ring = recorder.add_ring(64);  // rings, names and tracks may come after the start
  const NameId read = recorder.intern("read");
  const NameId update = recorder.intern("update");
  ring.try_push(SpanRecord{.device = 0,
                           .name = read,
                           .track = reads,
                           .step = 1,
                           .subgroup = 0,
                           .submit_ts = 10,
                           .ts = 20,
                           .dur = 5,
                           .bytes = 100,
                           .padding_bytes = 28});
  ring.try_push(SpanRecord{.status = SpanStatus::failed,
                           .layer = 4,
                           .name = update,
                           .track = csd0,
                           .step = 1,
                           .ts = 30,
                           .dur = 7});
  ring.try_push(CounterRecord{.track = depth, .ts = 31, .value = 2});
  ring.try_push(StepRecord{.step = 1,
                           .ts = 5,
                           .dur = 50,
                           .tokens = 64,
                           .loss = 3.5,
                           .grad_norm = 0.25,
                           .loss_scale = 2,
                           .lr = 0.125});
  require_ok(collector->stop());

  auto reader = require_ok(Reader::open(folder.file("run.db")));
  REQUIRE(table_of(*reader,
                   "SELECT parent.name, track.name, string.value, submit_ts, ts, dur, step_id, "
                   "subgroup_id, device_id, layer_id, bytes, padding_bytes, status FROM span "
                   "JOIN string ON string.id = name_id JOIN track ON track.id = track_id "
                   "LEFT JOIN track AS parent ON parent.id = track.parent_id ORDER BY ts") ==
          "csd0 | csd0 read | read | 10 | 20 | 5 | 1 | 0 | 0 | NULL | 100 | 28 | 0\n"
          "NULL | csd0 | update | 0 | 30 | 7 | 1 | NULL | NULL | 4 | 0 | 0 | 1\n");
  REQUIRE(table_of(*reader, "SELECT * FROM step") ==
          "1 | 5 | 50 | 3.5 | 0.25 | 2.0 | 0.125 | 64 | 0\n");
  REQUIRE(table_of(*reader, "SELECT ts, value FROM counter") == "31 | 2.0\n");
  REQUIRE(table_of(*reader, "SELECT * FROM link_bytes") == "1 | host | read | 100 | 28\n");
  REQUIRE(table_of(*reader, "SELECT value FROM meta WHERE key = 'method'") == "csd\n");
  REQUIRE(table_of(*reader, "SELECT name, value FROM stat") ==
          "recording_level_lowered | 0\nrecords_dropped_ring_full | 0\n"
          "records_lost_write_failed | 0\n");
}

TEST_CASE("after flush a reader of the live file sees what was pushed before") {
  const TempFolder folder;
  Recorder recorder;
  auto collector = start(recorder, folder.file("run.db"));
  Ring& ring = recorder.add_ring(64);
  const TrackId track = recorder.add_track(kNoTrack, "host", "cpu");
  const NameId name = recorder.intern("update");
  auto reader = require_ok(Reader::open(folder.file("run.db")));
  for (int i = 1; i <= 3; ++i) {
    ring.try_push(SpanRecord{.name = name, .track = track});
    require_ok(collector->flush());
    REQUIRE(table_of(*reader, "SELECT count(*) FROM span") == std::to_string(i) + "\n");
  }
}

TEST_CASE("flows join rows of spans, over batches and rings") {
  const TempFolder folder;
  Recorder recorder;
  auto collector = start(recorder, folder.file("run.db"));
  Ring& one = recorder.add_ring(64);
  Ring& two = recorder.add_ring(64);
  const TrackId track = recorder.add_track(kNoTrack, "host", "cpu");
  const NameId cause = recorder.intern("cause");
  const NameId effect = recorder.intern("effect");
  const record::SpanRef first = one.try_push_span({.name = cause, .track = track, .ts = 9});
  require_ok(collector->flush());
  const record::SpanRef second = one.try_push_span({.name = cause, .track = track, .ts = 3});
  const record::SpanRef third = two.try_push_span({.name = effect, .track = track, .ts = 1});
  two.try_push(record::FlowRecord{.from = first, .to = third});
  two.try_push(record::FlowRecord{.from = second, .to = third});
  two.try_push(record::FlowRecord{.from = record::kNoSpan, .to = third});  // it was dropped
  require_ok(collector->stop());
  auto reader = require_ok(Reader::open(folder.file("run.db")));
  REQUIRE(table_of(*reader,
                   "SELECT a.ts, x.value, b.ts, y.value FROM flow JOIN span a ON a.id = from_span "
                   "JOIN span b ON b.id = to_span JOIN string x ON x.id = a.name_id "
                   "JOIN string y ON y.id = b.name_id ORDER BY a.ts") ==
          "3 | cause | 1 | effect\n9 | cause | 1 | effect\n");
}

TEST_CASE("a batch's spans of one track lie side by side, by time, and a reader finds them") {
  const TempFolder folder;
  Recorder recorder;
  auto collector = start(recorder, folder.file("run.db"));
  Ring& ring = recorder.add_ring(1 << 10);
  const NameId name = recorder.intern("work");
  const std::array tracks = {recorder.add_track(kNoTrack, "host", "a"),
                             recorder.add_track(kNoTrack, "host", "b")};
  for (int batch = 0; batch < 3; ++batch) {
    for (int i = 0; i < 100; ++i) {
      const int ts = 1000 * batch + (37 * i) % 100;  // out of order
      ring.try_push(SpanRecord{.name = name, .track = tracks[i % 2], .ts = ts, .dur = 5});
    }
    require_ok(collector->flush());
  }
  require_ok(collector->stop());
  auto reader = require_ok(Reader::open(folder.file("run.db")));
  REQUIRE(table_of(*reader, "SELECT count(*), sum(last_id - first_id + 1) FROM span_run") ==
          "6 | 300\n");
  REQUIRE(
      table_of(*reader,
               "SELECT count(*) FROM span_run JOIN span ON span.id BETWEEN first_id AND last_id "
               "WHERE span.track_id <> span_run.track_id OR span.ts < span_run.ts OR "
               "span.ts + span.dur > end_ts") == "0\n");
  // From 1000 to 1010 both included: those that begin there.
  const auto spans = require_ok(rundb::SpanReader(*reader).spans_between(1000, 1010));
  REQUIRE(spans.size() == 11);
  for (std::size_t i = 0; i < spans.size(); ++i) {
    REQUIRE(spans[i].ts == 1000 + static_cast<std::int64_t>(i));
  }
}

TEST_CASE("the recorder records itself: passes, levels, notes, its share of a processor") {
  const TempFolder folder;
  Recorder recorder;
  auto collector =
      start(recorder, folder.file("run.db"), {},
            {.flush_interval = std::chrono::hours(1), .cost_share_max = 1e9, .cost_watch = {}});
  Ring& ring = recorder.add_ring(64);
  ring.try_push(StepRecord{.step = 0});
  require_ok(collector->flush());
  recorder.set_level(record::Level::transfers);
  ring.try_push(StepRecord{.step = 1});
  require_ok(collector->flush());
  recorder.note("stop asked for by user");  // written though nothing else comes
  require_ok(collector->stop());
  auto reader = require_ok(Reader::open(folder.file("run.db")));
  REQUIRE(table_of(*reader,
                   "SELECT string.value FROM span JOIN string ON string.id = name_id JOIN track ON "
                   "track.id = track_id WHERE track.kind = 'recorder' AND dur = 0 ORDER BY ts") ==
          "level all\nlevel transfers (from all, by user)\nstop asked for by user\n");
  REQUIRE(table_of(*reader,
                   "SELECT count(*) > 0 FROM span JOIN string ON string.id = name_id WHERE value = "
                   "'collect' AND dur > 0") == "1\n");
  REQUIRE(table_of(*reader, "SELECT count(*) > 0, min(value) >= 0 FROM counter") == "1 | 1\n");
}

TEST_CASE("the memory of the process is a counter, once a flush at most, at level all") {
  const TempFolder folder;
  Recorder recorder;
  auto collector = start(recorder, folder.file("run.db"), {},
                         {.flush_interval = std::chrono::hours(1), .cost_share_max = 1e9});
  Ring& ring = recorder.add_ring(64);
  const auto flush_with_a_record = [&] {
    ring.try_push(StepRecord{.step = 0});
    require_ok(collector->flush());
  };
  constexpr int kFlushes = 5;
  for (int i = 0; i < kFlushes; ++i) flush_with_a_record();
  recorder.set_level(record::Level::transfers);
  for (int i = 0; i < kFlushes; ++i) flush_with_a_record();
  require_ok(collector->stop());
  auto reader = require_ok(Reader::open(folder.file("run.db")));
  REQUIRE(table_of(*reader,
                   "SELECT parent.name, count(*), min(value) > 1e6, max(value) < 1e12 FROM counter "
                   "JOIN track ON track.id = track_id JOIN track AS parent ON parent.id = "
                   "track.parent_id WHERE track.name = 'resident memory (bytes)'") ==
          "host | 5 | 1 | 1\n");
}

TEST_CASE("a recorder that takes more of a processor than it may lowers its level, and says so") {
  const TempFolder folder;
  Recorder recorder;
  // Whatever it takes is too much.
  auto collector =
      start(recorder, folder.file("run.db"), {},
            {.flush_interval = std::chrono::hours(1), .cost_share_max = 0, .cost_watch = {}});
  // Once or twice may be a moment in which the machine was busy; thrice is not.
  using enum record::Level;
  for (const auto level : {all, all, transfers, transfers, transfers, steps, steps, steps, steps}) {
    recorder.add_ring(64).try_push(StepRecord{.step = 0});
    require_ok(collector->flush());
    REQUIRE(recorder.level() == level);
  }
  require_ok(collector->stop());
  auto reader = require_ok(Reader::open(folder.file("run.db")));
  const auto losses = require_ok(reader->losses());
  REQUIRE(losses.size() == 1);
  REQUIRE(losses[0].name == "recording_level_lowered");
  REQUIRE(losses[0].value == 2);
  REQUIRE(table_of(*reader,
                   "SELECT value FROM span JOIN string ON string.id = name_id WHERE value LIKE "
                   "'level %' ORDER BY ts") ==
          "level all\nlevel transfers (from all, by collector)\n"
          "level steps (from transfers, by collector)\n");
}

TEST_CASE("without being asked, the collector flushes each interval") {
  const TempFolder folder;
  Recorder recorder;
  auto collector =
      start(recorder, folder.file("run.db"), {}, {.flush_interval = std::chrono::milliseconds(1)});
  recorder.add_ring(64).try_push(StepRecord{.step = 1});
  auto reader = require_ok(Reader::open(folder.file("run.db")));
  while (require_ok(reader->steps()).empty()) std::this_thread::yield();  // ends, or hangs
  require_ok(collector->stop());
}

TEST_CASE("a shorter flush interval is in force at once") {
  const TempFolder folder;
  Recorder recorder;
  auto collector = start(recorder, folder.file("run.db"));  // an hour
  Ring& ring = recorder.add_ring(64);
  auto reader = require_ok(Reader::open(folder.file("run.db")));
  ring.try_push(StepRecord{.step = 1});
  collector->set_flush_interval(std::chrono::milliseconds(1));
  while (require_ok(reader->steps()).empty()) std::this_thread::yield();  // ends, or hangs
  ring.try_push(StepRecord{.step = 2});
  while (require_ok(reader->steps()).size() < 2) std::this_thread::yield();
  require_ok(collector->stop());
}

TEST_CASE("more records than a batch holds, from several threads: all arrive") {
  const TempFolder folder;
  Recorder recorder;
  auto collector = start(recorder, folder.file("run.db"), {},
                         {.flush_interval = std::chrono::milliseconds(1),
                          .batch_record_count = 100,
                          .records_itself = false});
  constexpr int kThreads = 3;
  constexpr int kRecords = 5000;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&recorder, t] {
      Ring& ring = recorder.add_ring(kRecords);
      const TrackId track = recorder.add_track(kNoTrack, "thread", std::to_string(t));
      for (int i = 0; i < kRecords; ++i)
        ring.try_push(SpanRecord{.name = recorder.intern("work " + std::to_string(i % 7)),
                                 .track = track,
                                 .ts = i,
                                 .bytes = i});
    });
  for (std::thread& thread : threads) thread.join();
  require_ok(collector->stop());
  auto reader = require_ok(Reader::open(folder.file("run.db")));
  REQUIRE(
      table_of(*reader,
               "SELECT track.name, count(*), count(DISTINCT ts), sum(bytes) FROM span JOIN track "
               "ON track.id = track_id GROUP BY track.name") ==
      "0 | 5000 | 5000 | 12497500\n1 | 5000 | 5000 | 12497500\n2 | 5000 | 5000 | 12497500\n");
  REQUIRE(table_of(*reader, "SELECT count(DISTINCT name_id) FROM span") == "7\n");
}

TEST_CASE("dropped records are counted in the file, while the run is live and at its end") {
  const TempFolder folder;
  Recorder recorder;
  auto collector = start(recorder, folder.file("run.db"));
  Ring& small = recorder.add_ring(4);
  Ring& other = recorder.add_ring(4);
  const auto push = [](Ring& ring, int count) {
    for (int i = 0; i < count; ++i) ring.try_push(StepRecord{.step = i});
  };
  push(small, 10);  // 6 too many
  push(other, 7);   // 3
  require_ok(collector->flush());
  auto reader = require_ok(Reader::open(folder.file("run.db")));
  auto losses = require_ok(reader->losses());
  REQUIRE(losses.size() == 1);
  REQUIRE(losses[0].name == "records_dropped_ring_full");
  REQUIRE(losses[0].value == 9);
  push(small, 5);  // 1 more
  require_ok(collector->stop());
  losses = require_ok(reader->losses());
  REQUIRE(losses[0].value == 10);
}

TEST_CASE("a resumed run adds to the tables of the first") {
  const TempFolder folder;
  for (int part = 0; part < 2; ++part) {
    Recorder recorder;
    // The second process names things in another order: its ids differ, the file's do not.
    if (part == 1) recorder.intern("something new");
    const NameId name = recorder.intern("read");
    if (part == 1) recorder.add_track(kNoTrack, "thread", "new");
    const TrackId track =
        recorder.add_track(kNoTrack, "link", "csd0 read",
                           std::array{record::TrackLink{0, record::LinkDirection::read}});
    auto writer = part == 0 ? Writer::create(folder.file("run.db"), IfExists::refuse)
                            : Writer::open_append(folder.file("run.db"), 1);
    auto collector =
        require_ok(Collector::start(recorder, require_ok(std::move(writer)),
                                    {.links = {{.id = 0, .name = "host"}}}, kOnlyWhenAsked));
    Ring& ring = recorder.add_ring(8);
    ring.try_push(SpanRecord{.name = name, .track = track, .step = part, .bytes = 10 + part});
    ring.try_push(StepRecord{.step = part});
    require_ok(collector->stop());
  }
  auto reader = require_ok(Reader::open(folder.file("run.db")));
  REQUIRE(table_of(*reader, "SELECT * FROM link_bytes") ==
          "0 | host | read | 10 | 0\n1 | host | read | 11 | 0\n");
  REQUIRE(table_of(*reader, "SELECT count(DISTINCT track_id), count(DISTINCT name_id) FROM span") ==
          "1 | 1\n");
}

TEST_CASE("kill -9 of a collecting process leaves a sound file with whole batches") {
  const TempFolder folder;
  for (int round = 0; round < 5; ++round) {
    const std::string path = folder.file("run" + std::to_string(round) + ".db");
    int ready[2];
    REQUIRE(::pipe(ready) == 0);
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      Recorder recorder;
      auto writer = Writer::create(path, IfExists::refuse);
      if (!writer.ok()) ::_exit(1);
      Ring& ring = recorder.add_ring(1 << 12);
      const TrackId track = recorder.add_track(kNoTrack, "host", "cpu");
      const NameId name = recorder.intern("update");
      auto collector = Collector::start(recorder, std::move(*writer), {},
                                        {.flush_interval = std::chrono::milliseconds(1)});
      if (!collector.ok()) ::_exit(1);
      for (int step = 0;; ++step) {
        for (int i = 0; i < 100; ++i)
          ring.try_push(SpanRecord{.name = name, .track = track, .step = step, .ts = i});
        ring.try_push(StepRecord{.step = step});
        if (step == 0 && !((*collector)->flush().ok() && ::write(ready[1], "1", 1) == 1))
          ::_exit(1);
      }
    }
    ::close(ready[1]);
    char byte = 0;
    REQUIRE(::read(ready[0], &byte, 1) == 1);
    ::close(ready[0]);
    ::usleep(static_cast<useconds_t>(3000 * round));
    REQUIRE(::kill(child, SIGKILL) == 0);
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(WIFSIGNALED(status));

    auto reader = require_ok(Reader::open(path));
    REQUIRE(table_of(*reader, "PRAGMA integrity_check") == "ok\n");
    REQUIRE(table_of(*reader, "SELECT count(*) FROM span WHERE step_id = 0") == "100\n");
    REQUIRE(table_of(*reader,
                     "SELECT count(*) FROM span WHERE name_id NOT IN (SELECT id FROM string) "
                     "OR track_id NOT IN (SELECT id FROM track)") == "0\n");
  }
}

void record_past_the_end_of_the_disk(const std::string& path) {
  Recorder recorder;
  auto collector = start(recorder, path);
  Ring& ring = recorder.add_ring(1 << 12);
  const TrackId track = recorder.add_track(kNoTrack, "host", "cpu");
  const NameId name = recorder.intern("update");
  std::int64_t pushed = 0;
  const auto push = [&](int count) {
    for (int i = 0; i < count; ++i)
      pushed += ring.try_push(SpanRecord{.name = name, .track = track, .ts = pushed});
  };
  for (int i = 0; i < 1000 && collector->status().ok(); ++i) {
    push(1000);
    (void)collector->flush();
  }
  const Status reason = collector->status();
  REQUIRE_FALSE(reason.ok());
  REQUIRE(reason.error().code() == ErrorCode::no_space);
  REQUIRE(recorder.level() == record::Level::off);
  // The run goes on; whoever pushes all the same is not held up, and what it pushes is counted.
  push(10);
  REQUIRE_FALSE(collector->flush().ok());
  const Status stopped = collector->stop();
  REQUIRE_FALSE(stopped.ok());
  REQUIRE(stopped.error().message() == reason.error().message());

  auto reader = require_ok(Reader::open(path));
  REQUIRE(table_of(*reader, "PRAGMA integrity_check") == "ok\n");
  const auto losses = require_ok(reader->losses());
  REQUIRE(losses.size() == 2);
  REQUIRE(losses[0].name == "recording_stopped");
  REQUIRE(losses[1].name == "records_lost_write_failed");
  REQUIRE(std::stoll(table_of(*reader, "SELECT count(*) FROM span")) + losses[1].value == pushed);
}

TEST_CASE("on a full disk recording stops, and written and lost records add up to all") {
  const TempFolder folder;
  std::filesystem::create_directory(folder.file("small"));
  std::string skipped_because;
  std::thread([&] {  // with a mount namespace of its own, which the collector's thread inherits
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("tmpfs", folder.file("small").c_str(), "tmpfs", 0, "size=2m") != 0) {
      skipped_because = std::string("cannot mount a tmpfs: ") + std::strerror(errno);
      return;
    }
    record_past_the_end_of_the_disk(folder.file("small") + "/run.db");
  })
      .join();
  if (!skipped_because.empty()) skip_test(skipped_because);
}

}  // namespace
}  // namespace sluice::collect
