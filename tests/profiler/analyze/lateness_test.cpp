// What a run says of operations that ended later than modelled.

#include "profiler/analyze/lateness.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "profiler/analyze/comparison.h"
#include "profiler/analyze/run_analysis.h"
#include "storage/rundb/writer.h"
#include "tests/storage/rundb/rundb_fixture.h"

namespace sluice::analyze {
namespace {

using rundb::require_ok;

std::string late_run(const std::string& path, const std::string& clock,
                     const std::vector<rundb::LatenessRow>& rows) {
  auto writer = require_ok(rundb::Writer::create(path, rundb::IfExists::refuse));
  require_ok(writer->write_facts({.meta = {{"clock", clock}, {"time_scale", "20"}}}));
  for (const char* stage : {"update", "state_read"}) writer->string_id(stage);
  rundb::Batch batch;
  for (std::int64_t step = 0; step < 12; ++step)
    batch.steps.push_back({.id = step, .ts = 100 * step, .dur = 100, .loss = 3, .tokens = 10});
  batch.lateness = rows;
  require_ok(writer->append(batch));
  require_ok(writer->close());
  return path;
}

RunAnalysis analysis_of_late(const std::string& path) {
  const auto reader = require_ok(rundb::Reader::open(path));
  const RunInfo info = require_ok(load_run_info(*reader));
  return require_ok(analyze_run(*reader, info));
}

const Answer* late_answer(const RunAnalysis& analysis) {
  const auto found = std::ranges::find(analysis.answers, "late operations", &Answer::of);
  return found == analysis.answers.end() ? nullptr : &*found;
}

}  // namespace

TEST_CASE("a computer that was too slow for what it emulates is said in one sentence") {
  const rundb::TempFolder folder;
  const RunAnalysis analysis = analysis_of_late(
      late_run(folder.file("run.db"), "emulated",
               {{0, "update", 600, 500, 1000, 900}, {0, "state_read", 400, 200, 1000, 100}}));
  CHECK(analysis.lateness.is_late());
  CHECK(analysis.lateness.words() ==
        "70.0 % of 1 000 modelled operations ended late, all together by 50 % of their time, "
        "update, state_read most: these times are partly this computer's. --set time_scale=42 "
        "would give it the time.");
  CHECK(analysis.lateness.short_words() == "70 % of operations LATE");
  REQUIRE(late_answer(analysis) != nullptr);
  CHECK(late_answer(analysis)->outcome == Outcome::answer);
}

TEST_CASE("a stretch that was late is told where the run as a whole was not") {
  const rundb::TempFolder folder;
  const RunAnalysis analysis = analysis_of_late(
      late_run(folder.file("run.db"), "emulated",
               {{0, "update", 9900, 0, 1'000'000, 0}, {6, "update", 100, 40, 100, 40}}));
  CHECK_FALSE(analysis.lateness.all.is_late());
  CHECK(analysis.lateness.is_late());
  CHECK_THAT(analysis.lateness.words(), Catch::Contains("0.4 % of 10 000") &&
                                            Catch::Contains("(from step 7 on 40 % of them)"));
}

TEST_CASE("operations on time, no rows, and another clock are three different answers") {
  const rundb::TempFolder folder;
  const std::vector<rundb::LatenessRow> few = {{0, "update", 1000, 9, 1000, 1}};
  const RunAnalysis on_time = analysis_of_late(late_run(folder.file("a.db"), "emulated", few));
  CHECK(on_time.lateness.words().empty());
  CHECK(on_time.lateness.short_words().empty());
  REQUIRE(late_answer(on_time) != nullptr);
  CHECK(late_answer(on_time)->words() ==
        "Late operations: nothing found (0.9 % of 1 000 modelled operations).");
  const RunAnalysis unknown = analysis_of_late(late_run(folder.file("b.db"), "emulated", {}));
  REQUIRE(late_answer(unknown) != nullptr);
  CHECK(late_answer(unknown)->outcome == Outcome::could_not_look);
  CHECK(late_answer(analysis_of_late(late_run(folder.file("c.db"), "real", few))) == nullptr);
}

TEST_CASE("a comparison with a run that was late has a caution") {
  const rundb::TempFolder folder;
  const std::string late =
      late_run(folder.file("late.db"), "emulated", {{0, "update", 1000, 700, 1000, 500}});
  const std::string on_time =
      late_run(folder.file("on_time.db"), "emulated", {{0, "update", 1000, 0, 1000, 0}});
  const Comparison comparison = require_ok(compare_runs(on_time, late));
  CHECK(comparison.comparability.is_comparable());
  REQUIRE(comparison.comparability.cautions.size() == 1);
  CHECK_THAT(comparison.comparability.cautions[0],
             Catch::StartsWith("B: 70.0 % of 1 000 modelled operations ended late"));
}

}  // namespace sluice::analyze
