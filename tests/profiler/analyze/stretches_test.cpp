// What each change of a run brought, side by side.

#include "profiler/analyze/stretches.h"

#include <array>
#include <catch2/catch.hpp>

#include "storage/rundb/writer.h"
#include "tests/profiler/analyze/made_step.h"
#include "tests/storage/rundb/rundb_fixture.h"

using namespace sluice;
using namespace sluice::analyze;
using rundb::require_ok;

namespace {

// Steps of what each stretch says, the first two of each ten times as long; one transfer a step out
// of a drive over the host link and the drive's own.
class MadeStretches {
 public:
  explicit MadeStretches(const std::string& path)
      : path_(path), writer_(require_ok(rundb::Writer::create(path, rundb::IfExists::refuse))) {
    rundb::Facts facts;
    facts.meta = {{"method", "host"}, {"pipeline", "serial"}, {"parameters", "1000"}};
    facts.links = {{.id = 0, .name = "host"},
                   {.id = 1, .name = "csd0.drive"},
                   {.id = 2, .name = "node.between"}};
    for (const char* knob : {"method", "pipeline", "density", "buffers"}) {
      facts.knobs.push_back({.name = knob, .type = "word"});
    }
    require_ok(writer_->write_facts(facts));
    track_ = writer_->track_id({}, "device", "csd0 read",
                               std::array{rundb::TrackLink{0, rundb::Direction::read},
                                          rundb::TrackLink{1, rundb::Direction::read}});
    const std::int64_t ranks = writer_->track_id({}, "group", "ranks", {});
    track_of_ranks_ = writer_->track_id(ranks, "link", "ranks all_reduce",
                                        std::array{rundb::TrackLink{2, rundb::Direction::read}});
  }

  void change(const std::string& knob, const std::string& from, const std::string& to) {
    rundb::Batch batch;
    batch.knob_changes = {{now_, step_, knob, from, to, "settings"}};
    require_ok(writer_->append(batch));
  }

  // As bytes out of the drive, and to other ranks.
  void steps(int count, TimeNs dur_ms, std::int64_t bytes, std::int64_t bytes_to_ranks = 0) {
    rundb::Batch batch;
    for (int i = 0; i < count; ++i) {
      const TimeNs dur = (i < 2 ? 10 : 1) * dur_ms * kMs;
      batch.steps.push_back({.id = step_, .ts = now_, .dur = dur, .tokens = 10});
      batch.spans.push_back({.track_id = track_,
                             .name_id = writer_->string_id("read"),
                             .ts = now_,
                             .dur = dur,
                             .step_id = step_++,
                             .bytes = bytes,
                             .padding_bytes = 7});
      if (bytes_to_ranks > 0) {
        batch.spans.push_back(batch.spans.back());
        batch.spans.back().track_id = track_of_ranks_;
        batch.spans.back().bytes = bytes_to_ranks;
      }
      now_ += dur;
    }
    require_ok(writer_->append(batch));
  }

  // So many of a hundred operations were late in the steps from `step` on.
  void late(std::int64_t step, std::int64_t operations) {
    writer_->string_id("read");
    rundb::Batch batch;
    batch.lateness = {{step, "read", 100, operations, 1000 * kMs, operations * 10 * kMs}};
    require_ok(writer_->append(batch));
  }

  std::vector<Stretch> stretches() {
    require_ok(writer_->close());
    auto reader = require_ok(rundb::Reader::open(path_));
    const RunInfo info = require_ok(load_run_info(*reader));
    return require_ok(stretches_of(*reader, info, require_ok(reader->steps())));
  }

 private:
  std::string path_;
  std::unique_ptr<rundb::Writer> writer_;
  std::int64_t track_ = 0;
  std::int64_t track_of_ranks_ = 0;
  std::int64_t step_ = 0;
  TimeNs now_ = 0;
};

}  // namespace

TEST_CASE("each change of a run is set beside what was before it") {
  const rundb::TempFolder folder;
  MadeStretches run(folder.file("run.db"));
  run.steps(6, 100, 16'000);
  run.change("method", "host", "csd");
  run.steps(5, 50, 4'000);
  run.change("pipeline", "serial", "nbuffer");
  run.change("density", "1", "0.05");
  run.steps(4, 25, 300);
  const std::vector<Stretch> stretches = run.stretches();
  REQUIRE(stretches.size() == 3);
  CHECK(stretches[0].settings == "host · serial");
  CHECK(stretches[1].settings == "csd · serial");
  CHECK(stretches[2].settings == "csd · nbuffer · density 0.05");
  CHECK(stretches[1].first_step == 6);
  CHECK(stretches[1].last_step == 10);
  CHECK(stretches[1].steps == 3);
  CHECK(stretches[1].dur == 50 * kMs);
  CHECK(stretches[1].read_bytes == 4'000);  // payload, once for each step that counts
  CHECK(stretches[1].write_bytes == 0);
  CHECK(stretches[0].speed_up == 1);
  CHECK(stretches[2].speed_up == Approx(4));
}

TEST_CASE("a speed-up that rests on late steps is marked, and so is each beside a late beginning") {
  const rundb::TempFolder folder;
  const auto run_late_in = [&folder](const char* name, std::array<std::int64_t, 3> late) {
    MadeStretches run(folder.file(name));
    for (std::size_t s = 0; s < late.size(); ++s) {
      if (s > 0) run.change("buffers", fmt::format("{}", s), fmt::format("{}", s + 1));
      run.steps(6, 100, 1);
      run.late(static_cast<std::int64_t>(6 * s), late[s]);
    }
    return run.stretches();
  };
  const std::vector<Stretch> middle = run_late_in("middle.db", {2, 30, 1});
  REQUIRE(middle.size() == 3);
  CHECK(middle[1].lateness.late == 30);
  CHECK_FALSE(middle[0].is_speed_up_late);
  CHECK(middle[1].is_speed_up_late);
  CHECK_FALSE(middle[2].is_speed_up_late);
  CHECK(late_speed_up_words(middle, "*", 30) ==
        "* Operations were late (30 % in steps 7 to 12), so these speed-ups are partly this "
        "computer's; --set time_scale=30 would give it the time.");
  const std::vector<Stretch> first = run_late_in("first.db", {70, 1, 0});
  CHECK(first[0].is_speed_up_late);
  CHECK(first[2].is_speed_up_late);
  const std::vector<Stretch> none = run_late_in("none.db", {1, 1, 0});
  CHECK_FALSE(none[2].is_speed_up_late);
  CHECK(late_speed_up_words(none, "*", 30).empty());
}

TEST_CASE("what ranks send one another is no byte of the host link") {
  const rundb::TempFolder folder;
  MadeStretches run(folder.file("run.db"));
  run.steps(5, 100, 4'000, 50'000);
  const std::vector<Stretch> stretches = run.stretches();
  REQUIRE(stretches.size() == 1);
  CHECK(stretches[0].read_bytes == 4'000);
}

TEST_CASE(
    "a stretch without a step that counts is left out, and a run that never changed has one") {
  const rundb::TempFolder folder;
  MadeStretches changed(folder.file("changed.db"));
  changed.steps(4, 100, 1);
  changed.change("buffers", "3", "2");
  changed.steps(2, 100, 1);
  changed.change("buffers", "2", "4");
  changed.steps(3, 100, 1);
  const std::vector<Stretch> stretches = changed.stretches();
  REQUIRE(stretches.size() == 2);
  CHECK(stretches[0].settings == "host · serial");
  CHECK(stretches[1].settings == "host · serial · buffers 4");
  MadeStretches plain(folder.file("plain.db"));
  plain.steps(5, 100, 1);
  CHECK(plain.stretches().size() == 1);
}
