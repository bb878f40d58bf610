#include "gui/data/run_facts.h"

#include "gui/data/verdict.h"
#include "tests/gui/data/feed_fixture.h"

namespace sluice::gui {
namespace {

RunFacts facts_of(const MadeRun& made) {
  const TempFolder folder;
  write_made_run(folder.file("run.db"), made);
  auto reader = require_ok(rundb::Reader::open(folder.file("run.db")));
  return require_ok(load_run_facts(*reader));
}

}  // namespace

TEST_CASE("tracks stand in the order of data's way, grouped, without their group's name") {
  const RunFacts facts = facts_of({});
  std::string lines;
  for (const TrackFacts& track : facts.tracks) lines += track.group + "|" + track.name + "\n";
  CHECK(lines ==
        "compute|\n"
        "csd0|\ncsd0|state_read\ncsd0|update\ncsd0|state_write\n"
        "csd1|\ncsd1|state_read\ncsd1|update\ncsd1|state_write\n"
        "made counter|\n");
  CHECK(facts.tracks.back().is_counter);
  CHECK(facts.tracks[2].limit_bytes_per_s == 2e9);
  CHECK(facts.tracks[3].limit_bytes_per_s == 0);
}

TEST_CASE("what stands in for hardware is told apart from the method") {
  const RunFacts emulated =
      facts_of({.mode = "csd · serial · 2 devices · EMULATED CLOCK x1, EMULATED CSDs"});
  CHECK(emulated.method_line == "csd · serial · 2 devices");
  CHECK(emulated.stand_ins == "EMULATED CLOCK x1, EMULATED CSDs");
  const RunFacts real = facts_of({.mode = "host · nbuffer · 2 drives"});
  CHECK(real.method_line == "host · nbuffer · 2 drives");
  CHECK(real.stand_ins.empty());
}

TEST_CASE("limits are of recorded seconds: a slowed clock moves less in one") {
  const RunFacts facts = facts_of({.more_meta = {{"clock", "emulated"}, {"time_scale", "10"}}});
  CHECK(facts.tracks[2].limit_bytes_per_s == Approx(2e8));
}

TEST_CASE("changes and losses are facts") {
  const RunFacts facts = facts_of({.lost_count = 12,
                                   .changes = {{1, 1, "buffers", "3", "2", "settings"},
                                               {2, 2, "density", "1", "0.1", "user"}}});
  REQUIRE(facts.changes.size() == 2);
  CHECK(facts.changes[1].step == 2);
  CHECK(facts.changes[1].text == "density 1 \u2192 0.1");
  CHECK(facts.changes[1].who == "user");
  CHECK(lost_count(facts.losses) == 12);
}

TEST_CASE("the verdict names causes by share, and says why it knows nothing") {
  const TempFolder folder;
  write_made_run(folder.file("run.db"), {});
  auto reader = require_ok(rundb::Reader::open(folder.file("run.db")));
  const RunFacts facts = require_ok(load_run_facts(*reader));
  const Verdict verdict = require_ok(read_verdict(*reader, facts));
  REQUIRE(verdict.causes.size() >= 3);
  CHECK(verdict.causes.front().cause == analyze::Cause::compute);
  CHECK(verdict.causes.front().percent == 50);
  CHECK(verdict.why_empty.empty());

  write_made_run(folder.file("steps.db"), {.has_spans = false});
  auto without = require_ok(rundb::Reader::open(folder.file("steps.db")));
  const RunFacts bare = require_ok(load_run_facts(*without));
  CHECK(require_ok(read_verdict(*without, bare)).why_empty.find("record=transfers") !=
        std::string::npos);
}

}  // namespace sluice::gui
