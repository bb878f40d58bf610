#include "profiler/watch/watcher.h"

#include <cmath>

#include "storage/rundb/loss_counts.h"
#include "storage/rundb/writer.h"
#include "tests/storage/rundb/rundb_fixture.h"

namespace sluice::watch {

using rundb::require_ok;

namespace {

constexpr TimeNs kSecond = 1'000'000'000;

// A record that grows, and whether somebody records it.
struct Made {
  rundb::TempFolder folder;
  std::string path = folder.file("run.db");
  std::unique_ptr<rundb::Writer> writer =
      require_ok(rundb::Writer::create(path, rundb::IfExists::replace));
  bool is_live = true;
  TimeNs end_ts = 0;
  std::int64_t next_id = 0;

  Made() {
    rundb::Facts facts;
    facts.knobs.push_back({.name = "buffers", .type = "integer"});
    require_ok(writer->write_facts(facts));
  }
  void add(TimeNs dur, double loss = 2, bool skipped = false) {
    if (end_ts == 0) end_ts = kSecond;
    rundb::Batch batch;
    batch.steps.push_back({.id = next_id++,
                           .ts = end_ts,
                           .dur = dur,
                           .loss = loss,
                           .tokens = 64,
                           .skipped = skipped});
    end_ts += dur;
    require_ok(writer->append(batch));
  }
  void write(const rundb::Batch& batch) { require_ok(writer->append(batch)); }
  RunFollower follow() {
    return require_ok(RunFollower::open(path, [this](const std::string&) { return is_live; }));
  }
};

Watcher watcher(const std::string& condition) {
  return Watcher({require_ok(parse_condition(condition))});
}

std::vector<Event> told(Watcher& watcher, RunFollower& run, TimeNs now_ts = 0) {
  require_ok(run.look());
  return watcher.judge(run, now_ts);
}

}  // namespace

TEST_CASE("a slow step is told once, with the steps that it is beside") {
  Made made;
  for (int i = 0; i < 7; ++i) made.add(kSecond);
  RunFollower run = made.follow();
  Watcher watching = watcher("step_time>+20%");
  CHECK(told(watching, run).empty());
  made.add(2 * kSecond);
  const std::vector<Event> events = told(watching, run);
  REQUIRE(events.size() == 1);
  CHECK(events[0].step == 8);
  CHECK(events[0].value == 2);
  CHECK(events[0].words.find("steps 3 to 7") != std::string::npos);
  made.add(2 * kSecond);
  CHECK(told(watching, run).empty());  // it holds still
  made.add(kSecond);
  CHECK(told(watching, run).empty());
  made.add(2 * kSecond);
  CHECK(told(watching, run).size() == 1);
}

TEST_CASE("a step within the noise, and one with other settings, is not slow") {
  Made made;
  for (const int tenths : {50, 50, 10, 13, 11, 12, 14, 15, 10, 13}) made.add(tenths * kSecond / 10);
  RunFollower run = made.follow();
  Watcher watching = watcher("step_time>+20%");
  CHECK(told(watching, run).empty());
  rundb::Batch change;
  change.knob_changes.push_back({.step_id = made.next_id, .knob = "buffers", .new_value = "1"});
  made.write(change);
  for (int i = 0; i < 8; ++i) made.add(20 * kSecond);
  CHECK(told(watching, run).empty());
}

TEST_CASE("a loss that is no number is told where it begins") {
  Made made;
  for (int i = 0; i < 3; ++i) made.add(kSecond);
  for (int i = 0; i < 3; ++i) made.add(kSecond, std::nan(""));
  RunFollower run = made.follow();
  Watcher watching = watcher("loss=nan");
  const std::vector<Event> events = told(watching, run);
  REQUIRE(events.size() == 1);
  CHECK(events[0].step == 4);
  Watcher above = watcher("loss>1.5");
  RunFollower again = made.follow();
  CHECK(told(above, again).front().step == 1);
}

TEST_CASE("a stalled run is told by the clock that is given, once a step") {
  Made made;
  made.add(kSecond);
  RunFollower run = made.follow();
  Watcher watching = watcher("no_step_for>60s");
  CHECK(told(watching, run, made.end_ts + 60 * kSecond).empty());
  const std::vector<Event> events = told(watching, run, made.end_ts + 61 * kSecond);
  REQUIRE(events.size() == 1);
  CHECK(events[0].step == 1);
  CHECK(events[0].value == 61);
  CHECK(told(watching, run, made.end_ts + 90 * kSecond).empty());
  made.add(100 * kSecond);  // the step that was waited for
  CHECK(told(watching, run, made.end_ts).empty());
  made.is_live = false;
  CHECK(told(watching, run, made.end_ts + 900 * kSecond).empty());  // it has ended
}

TEST_CASE("a finished record has its stalls between steps") {
  Made made;
  for (const int seconds : {1, 70, 1}) made.add(seconds * kSecond);
  made.is_live = false;
  RunFollower run = made.follow();
  Watcher watching = watcher("no_step_for>60s");
  const std::vector<Event> events = told(watching, run, 0);
  REQUIRE(events.size() == 1);
  CHECK(events[0].step == 1);
  CHECK(events[0].value == 70);
}

TEST_CASE("lost records are told when there are more than the bound") {
  Made made;
  made.add(kSecond);
  RunFollower run = made.follow();
  Watcher watching = watcher("lost_records>0");
  CHECK(told(watching, run).empty());
  rundb::Batch lost;
  lost.stats.push_back(
      {.name = std::string(rundb::kRecordsDropped), .severity = rundb::Severity::loss, .value = 7});
  made.write(lost);
  const std::vector<Event> events = told(watching, run);
  REQUIRE(events.size() == 1);
  CHECK(events[0].value == 7);
  made.write(lost);
  CHECK(told(watching, run).empty());
}

TEST_CASE("a record that is gone is said, and one that another replaced is read anew") {
  Made made;
  for (int i = 0; i < 3; ++i) made.add(kSecond);
  RunFollower run = made.follow();
  Watcher watching = watcher("loss=nan");
  CHECK(told(watching, run).empty());
  Made other;
  other.add(kSecond, std::nan(""));
  require_ok(other.writer->close());
  require_ok(made.writer->close());
  std::filesystem::rename(other.path, made.path);
  CHECK(told(watching, run).size() == 1);
  CHECK(run.steps().size() == 1);
  std::filesystem::remove(made.path);
  const Status gone = run.look();
  REQUIRE(!gone.ok());
  CHECK(gone.error().code() == ErrorCode::not_found);
}

}  // namespace sluice::watch
