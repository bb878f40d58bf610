// A process that records at full rate is killed at 200 random instants (by seed). What it leaves
// opens with no more ado, holds whole batches only, and lacks nothing but what came after its last
// flush. It tells over a pipe what it had pushed by when.

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <random>

#include "base/clock.h"
#include "profiler/collect/collector.h"
#include "storage/rundb/reader.h"
#include "tests/storage/rundb/rundb_fixture.h"

namespace sluice::collect {
namespace {

using rundb::require_ok;
using rundb::table_of;

constexpr int kKills = 200;
constexpr std::chrono::milliseconds kFlushInterval{5};
constexpr int kTracks = 20;

// At the time `ts`, `pushed` spans had been pushed.
struct Said {
  TimeNs ts;
  std::int64_t pushed;
};

// Span i is the i-th that a ring took: its time is i, so that a gap would show. A counter and, with
// each span but the first, a flow go with it.
[[noreturn]] void record_until_killed(const std::string& path, int pipe) {
  record::Recorder recorder;
  auto writer = rundb::Writer::create(path, rundb::IfExists::refuse);
  if (!writer.ok()) ::_exit(1);
  record::Ring& ring = recorder.add_ring(1 << 14);
  std::vector<record::TrackId> tracks;
  for (int t = 0; t < kTracks; ++t) {
    tracks.push_back(recorder.add_track(record::kNoTrack, "device", std::to_string(t)));
  }
  const record::TrackId counter = recorder.add_track(tracks[0], "counter", "number");
  const record::NameId name = recorder.intern("work");
  auto collector = Collector::start(recorder, std::move(*writer), {},
                                    {.flush_interval = kFlushInterval, .cost_share_max = 1e9});
  if (!collector.ok()) ::_exit(1);
  record::SpanRef last = record::kNoSpan;
  for (std::int64_t pushed = 0;;) {
    for (int i = 0; i < 64; ++i) {
      const record::SpanRef span =
          ring.try_push_span({.name = name,
                              .track = tracks[static_cast<std::size_t>(pushed % kTracks)],
                              .ts = pushed,
                              .dur = 1,
                              .bytes = 4096});
      if (span == record::kNoSpan) {  // full: what is dropped is counted, and not the subject here
        ::usleep(50);
        continue;
      }
      pushed += 1;
      ring.try_push(record::CounterRecord{.track = counter, .ts = pushed, .value = 1.0});
      if (last != record::kNoSpan) ring.try_push(record::FlowRecord{.from = last, .to = span});
      last = span;
    }
    const Said said{monotonic_now_ns(), pushed};
    if (::write(pipe, &said, sizeof said) != static_cast<ssize_t>(sizeof said)) ::_exit(1);
  }
}

struct Killed {
  std::vector<Said> said;
  TimeNs ts = 0;  // of the kill
};

// Reads along until `instant_ns` after the first word, and then what is left in the pipe.
Killed kill_after(pid_t child, int pipe, TimeNs instant_ns) {
  Killed killed;
  Said said{};
  const auto read_one = [&] {
    const bool has_one = ::read(pipe, &said, sizeof said) == static_cast<ssize_t>(sizeof said);
    if (has_one) killed.said.push_back(said);
    return has_one;
  };
  REQUIRE(read_one());
  const TimeNs first_ts = monotonic_now_ns();
  while (monotonic_now_ns() < first_ts + instant_ns) REQUIRE(read_one());
  killed.ts = monotonic_now_ns();
  REQUIRE(::kill(child, SIGKILL) == 0);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));
  while (read_one()) {
  }
  return killed;
}

Killed record_and_kill(const std::string& path, TimeNs instant_ns) {
  int pipe[2];
  REQUIRE(::pipe(pipe) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::close(pipe[0]);
    record_until_killed(path, pipe[1]);
  }
  ::close(pipe[1]);
  Killed killed = kill_after(child, pipe[0], instant_ns);
  ::close(pipe[0]);
  return killed;
}

// All that a batch writes is there together, and nothing between two batches is missing.
void check_whole_batches(rundb::Reader& reader) {
  REQUIRE(table_of(reader, "PRAGMA integrity_check") == "ok\n");
  const std::string ours = " FROM span JOIN track ON track.id = track_id WHERE kind = 'device'";
  REQUIRE(table_of(reader, "SELECT count(*) = coalesce(max(ts) + 1, 0)" + ours) == "1\n");
  REQUIRE(table_of(reader,
                   "SELECT (SELECT coalesce(sum(last_id - first_id + 1), 0) FROM span_run) = "
                   "(SELECT count(*) FROM span), (SELECT coalesce(sum(count), 0) FROM lod WHERE "
                   "level = 7) = (SELECT count(*) FROM span)") == "1 | 1\n");
  REQUIRE(table_of(reader,
                   "SELECT count(*) FROM flow WHERE from_span NOT IN (SELECT id FROM span) OR "
                   "to_span NOT IN (SELECT id FROM span)") == "0\n");
  REQUIRE(table_of(reader,
                   "SELECT count(*) FROM span WHERE name_id NOT IN (SELECT id FROM string) OR "
                   "track_id NOT IN (SELECT id FROM track)") == "0\n");
}

// How old the oldest is that the file lacks, at the kill. What was pushed before a pass of the
// collector began is in the file once the pass has ended, and the file says when passes were.
TimeNs check_lacks_only_the_last(rundb::Reader& reader, const Killed& killed) {
  const std::int64_t spans = std::stoll(table_of(
      reader, "SELECT count(*) FROM span JOIN track ON track.id = track_id WHERE kind = 'device'"));
  const TimeNs last_begin_ts = std::stoll(
      table_of(reader,
               "SELECT coalesce(max(ts), 0) FROM span JOIN string ON string.id = name_id WHERE "
               "value = 'collect'"));
  TimeNs lacked_ts = killed.ts;
  for (const Said& said : killed.said) {
    if (said.ts <= last_begin_ts) REQUIRE(spans >= said.pushed);
    if (said.pushed > spans) lacked_ts = std::min(lacked_ts, said.ts);
  }
  return killed.ts - lacked_ts;
}

TEST_CASE("200 kills at random instants leave files that open and lack the last flush at most") {
  const rundb::TempFolder folder;
  std::minstd_rand random(20261121);
  std::vector<TimeNs> lacking;
  for (int i = 0; i < kKills; ++i) {
    const std::string path = folder.file("run.db");
    const Killed killed = record_and_kill(path, static_cast<TimeNs>(random() % 40'000'000));
    INFO("kill " << i);
    {
      auto reader = require_ok(rundb::Reader::open(path));
      check_whole_batches(*reader);
      lacking.push_back(check_lacks_only_the_last(*reader, killed));
    }
    for (const char* suffix : {"", "-wal", "-shm", "-writer"}) {
      std::filesystem::remove(path + suffix);
    }
  }
  std::ranges::sort(lacking);
  std::cout << "lacked at the kill, with a flush every " << kFlushInterval.count()
            << " ms: the last " << lacking[kKills / 2] / 1000 << " us (median), "
            << lacking.back() / 1000 << " us (most)\n";
  // What is written while a machine is busy may take its time; half of all kills do not meet that.
  REQUIRE(lacking[kKills / 2] < 20 * std::chrono::nanoseconds(kFlushInterval).count());
}

}  // namespace
}  // namespace sluice::collect
