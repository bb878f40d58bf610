#include "gui/data/step_paths.h"

#include <numeric>

#include "tests/gui/data/feed_fixture.h"

namespace sluice::gui {
namespace {

constexpr TimeNs kLong = 60'000'000'000;

struct PathsRun {
  TempFolder folder;
  std::unique_ptr<rundb::Reader> reader;
  RunFacts facts;
  std::vector<rundb::StepRow> steps;

  explicit PathsRun(const MadeRun& made) {
    write_made_run(folder.file("run.db"), made);
    reader = require_ok(rundb::Reader::open(folder.file("run.db")));
    facts = require_ok(load_run_facts(*reader));
    steps = require_ok(reader->steps());
  }
  std::shared_ptr<const StepPaths> paths(StepPathReader& paths_reader, TimeNs from, TimeNs to,
                                         TimeNs budget_ns = kLong) {
    return require_ok(paths_reader.advance(*reader, facts, steps, {from, to, 1000}, budget_ns));
  }
};

}  // namespace

TEST_CASE("paths of the steps in view sum to their verdicts, to the microsecond") {
  PathsRun run({.step_count = 5});
  StepPathReader paths_reader;
  const auto paths = run.paths(paths_reader, 150 * kMs, 350 * kMs);
  REQUIRE(paths != nullptr);
  REQUIRE(paths->steps.size() == 3);
  CHECK(paths->is_complete);
  for (const auto& path : paths->steps) {
    const rundb::StepRow& row = run.steps[static_cast<std::size_t>(path->step)];
    const analyze::StepVerdict verdict =
        analyze::verdict_of(require_ok(analyze::load_step(*run.reader, run.facts.info, row)));
    std::array<TimeNs, analyze::kCauseCount> on_path{};
    TimeNs ts = row.ts;
    for (const analyze::PathPiece& piece : path->pieces) {
      CHECK(piece.ts == ts);
      ts += piece.dur;
      on_path[analyze::index_of(piece.cause)] += piece.dur;
    }
    CHECK(ts == path->end_ts);
    for (std::size_t c = 0; c < analyze::kCauseCount; ++c) {
      const double share_ns = verdict.share[c] * static_cast<double>(row.dur);
      CHECK(std::abs(share_ns - static_cast<double>(on_path[c])) < 1000);
    }
    CHECK(on_path[analyze::index_of(analyze::Cause::compute)] == 50 * kMs);
  }
}

TEST_CASE("the spans of the paths are known by their ids") {
  PathsRun run({.step_count = 3});
  StepPathReader paths_reader;
  const auto paths = run.paths(paths_reader, 100 * kMs, 199 * kMs);
  REQUIRE(paths != nullptr);
  REQUIRE(paths->steps.size() == 1);
  for (const analyze::PathPiece& piece : paths->steps[0]->pieces) {
    CHECK(paths->is_on_path(piece.span_id));
    CHECK(paths->is_on_path(piece.span_id, piece.cause));
    CHECK_FALSE(paths->is_on_path(piece.span_id, analyze::Cause::commit));
    REQUIRE_FALSE(paths->of_span(piece.span_id).empty());
    CHECK(paths->of_span(piece.span_id).front().step == 1);
  }
  CHECK_FALSE(paths->is_on_path(999'999));
}

TEST_CASE("nothing new is worked out for the same view, and what was known is not read again") {
  PathsRun run({.step_count = 6});
  StepPathReader paths_reader;
  const auto first = run.paths(paths_reader, 0, 250 * kMs);
  REQUIRE(first != nullptr);
  CHECK(run.paths(paths_reader, 0, 250 * kMs) == nullptr);
  const auto second = run.paths(paths_reader, 0, 350 * kMs);
  REQUIRE(second->steps.size() == 4);
  CHECK(second->steps[1] == first->steps[1]);
}

TEST_CASE("steps are worked out piece by piece where they take longer than the time for it") {
  PathsRun run({.step_count = 4});
  StepPathReader paths_reader;
  std::size_t count = 1;
  auto paths = run.paths(paths_reader, 0, 400 * kMs, 0);
  for (; !paths_reader.is_complete(); ++count) {
    CHECK(paths->steps.size() == count);
    paths = run.paths(paths_reader, 0, 400 * kMs, 0);
    REQUIRE(paths != nullptr);
    REQUIRE(count < 10);
  }
  CHECK(paths->steps.size() == 4);
}

TEST_CASE("too many steps have no paths, and that is said") {
  PathsRun run({.step_count = static_cast<std::int64_t>(kPathStepsMax) + 1});
  StepPathReader paths_reader;
  const auto paths = run.paths(paths_reader, 0, 100'000 * kMs);
  CHECK(paths->is_too_wide);
  CHECK(paths->steps.empty());
  CHECK(paths_reader.is_complete());
}

TEST_CASE("a step without operations has no pieces") {
  PathsRun run({.step_count = 2, .has_spans = false});
  StepPathReader paths_reader;
  const auto paths = run.paths(paths_reader, 0, 200 * kMs);
  REQUIRE(paths->steps.size() == 2);
  CHECK(paths->steps[0]->pieces.empty());
}

}  // namespace sluice::gui
