// Ranks whose clocks are planted apart and one of which is planted late: the times are aligned, the
// late one is named, waits are charged to it, and records that are not of one run are refused.

#include <catch2/catch.hpp>

#include "profiler/analyze/rank_analysis.h"
#include "tests/profiler/analyze/made_step.h"
#include "tests/profiler/made_ranks.h"

namespace sluice::analyze {
namespace {

using rundb::require_ok;

RankAnalysis ranks_analysis_of(const std::vector<std::string>& paths) {
  const auto records = require_ok(open_rank_records(paths));
  return require_ok(analyze_ranks(records, {2, 3, 4, 5, 6, 7, 8, 9, 10, 11}));
}

void check_refused(const std::vector<std::string>& paths, const std::string& words) {
  const auto records = open_rank_records(paths);
  REQUIRE_FALSE(records.ok());
  CHECK(records.error().code() == ErrorCode::config);
  CHECK_THAT(records.error().message(), Catch::Matchers::Contains(words));
}

bool is_near(TimeNs found, TimeNs wanted) { return std::abs(found - wanted) <= 4; }  // rounding

}  // namespace

TEST_CASE("the time of a rank becomes rank 0's, on a line between two readings") {
  using rundb::OffsetAt;
  const RankClock clock = require_ok(RankClock::of({{OffsetAt::begin, 1000, 50, 3},
                                                    {OffsetAt::end, 3000, 70, 9},
                                                    {OffsetAt::begin, 10000, -8, 2}}));
  CHECK(clock.to_first(500) == 550);
  CHECK(clock.to_first(1000) == 1050);
  CHECK(clock.to_first(2000) == 2060);
  CHECK(clock.to_first(3000) == 3070);
  CHECK(clock.to_first(4000) == 4070);
  CHECK(clock.to_first(10000) == 9992);
  CHECK(clock.to_first(20000) == 19992);
  CHECK(clock.bound_ns() == 9);
  CHECK(clock.drift_ns() == 20);
  CHECK(RankClock().to_first(123) == 123);
  CHECK_FALSE(RankClock::of({}).ok());
  CHECK_FALSE(RankClock::of({{OffsetAt::begin, 1000, 5, 1}, {OffsetAt::begin, 10, 5, 1}}).ok());
}

TEST_CASE("clocks that are planted apart are aligned") {
  const rundb::TempFolder folder;
  for (const RankRecord& record : require_ok(open_rank_records(write_made_ranks(folder)))) {
    for (std::size_t step = 0; step < record.steps.size(); ++step) {
      const TimeNs begin = MadeRankWriter::kBegin + static_cast<TimeNs>(step) * 100 * kMs;
      CHECK(is_near(record.clock.to_first(record.steps[step].ts), begin));
    }
  }
}

TEST_CASE("the rank that is late is named, and the others' waits are charged to it") {
  const rundb::TempFolder folder;
  const RankAnalysis analysis = ranks_analysis_of(write_made_ranks(folder));
  CHECK(analysis.why_unknown.empty());
  CHECK(analysis.straggler == 2);
  CHECK(analysis.steps.size() == 10);
  CHECK(analysis.call_count == 20);
  CHECK(analysis.close_count == 10);  // commits, which all begin together
  CHECK(analysis.of(2).last_count == 10);
  CHECK(is_near(analysis.of(2).late_ns, 40 * kMs));
  CHECK(is_near(analysis.of(2).awaited_ns, (40 + 37) * kMs / 2));
  for (const auto& [rank, waiting_ms, exposed_ms, hidden_ms] :
       {std::array{0, 40, 46, 0}, std::array{1, 37, 43, 3}, std::array{2, 0, 6, 0}}) {
    INFO("rank " << rank);
    const RankUse& use = analysis.of(rank);
    CHECK(is_near(use.step_ns, 100 * kMs));
    CHECK(is_near(use.forward_ns, 10 * kMs));
    CHECK(is_near(use.backward_ns, (rank == 2 ? 60 : 20) * kMs));
    CHECK(is_near(use.waiting_ns, waiting_ms * kMs));
    CHECK(is_near(use.exposed_ns, exposed_ms * kMs));
    CHECK(is_near(use.hidden_ns, hidden_ms * kMs));
    CHECK(is_near(use.rest_ns, use.step_ns - use.forward_ns - use.backward_ns - use.exposed_ns));
  }
  const std::vector<std::string> findings = rank_findings(analysis);
  REQUIRE(findings.size() == 3);
  CHECK_THAT(findings[0], Catch::Matchers::Contains("The others wait for rank 2"));
  CHECK_THAT(findings[0], Catch::Matchers::Contains("10 of 20 calls"));
  CHECK_THAT(findings[0], Catch::Matchers::Contains("Its backward takes 40"));
  CHECK_THAT(findings[2], Catch::Matchers::Contains("10 of 20 calls"));
}

TEST_CASE("nobody is called late where the ranks are even, or nearer than the clocks are known") {
  const rundb::TempFolder folder;
  const RankAnalysis even = ranks_analysis_of(write_made_ranks(folder, {.late_ns = {0, 0, 0}}));
  CHECK_FALSE(even.straggler);
  CHECK(even.close_count == even.call_count);
  CHECK_THAT(rank_findings(even)[0],
             Catch::Matchers::Contains("No single rank holds the others up; waiting"));
  const RankAnalysis unknown = ranks_analysis_of(
      write_made_ranks(folder, {.late_ns = {0, 0, 5 * kMs}, .bound_ns = 3 * kMs}));
  CHECK_FALSE(unknown.straggler);
  CHECK(unknown.close_count == unknown.call_count);
}

TEST_CASE("two ranks that are late in turn are no straggler") {
  const rundb::TempFolder folder;
  const RankAnalysis analysis =
      ranks_analysis_of(write_made_ranks(folder, {.late_ns = {0, 20 * kMs, 20 * kMs + 100}}));
  CHECK(analysis.of(1).last_count + analysis.of(2).last_count == 0);
  CHECK_FALSE(analysis.straggler);
}

TEST_CASE("steps that a rank lacks are left out, and that none is left is said") {
  const rundb::TempFolder folder;
  const auto records = require_ok(open_rank_records(write_made_ranks(folder)));
  const RankAnalysis some = require_ok(analyze_ranks(records, {11, 12, 13}));
  CHECK(some.steps == std::vector<std::int64_t>{11});
  const RankAnalysis none = require_ok(analyze_ranks(records, {12}));
  CHECK(none.why_unknown == "no step is in the records of all ranks");
  CHECK(ranks_answer(none).outcome == Outcome::could_not_look);
}

TEST_CASE("records that are not those of one run's ranks are refused in words") {
  const rundb::TempFolder folder;
  const rundb::TempFolder other_folder;
  const std::vector<std::string> paths = write_made_ranks(folder);
  const std::vector<std::string> other = write_made_ranks(other_folder, {.run_id = "another"});
  check_refused({paths[0], paths[2]}, "3 ranks, and the record of rank 1 is missing");
  check_refused({paths[0], paths[1], paths[1], paths[2]}, "both the record of rank 1");
  check_refused({paths[0], paths[1], other[2]}, "records of two runs");
  check_refused({paths[0], paths[1], other[2]}, "sluice compare");
  check_refused({paths[1]}, "the record of rank 0, 2 is missing");
  const std::string alone = folder.file("alone.db");
  require_ok(require_ok(rundb::Writer::create(alone, rundb::IfExists::replace))->close());
  check_refused({paths[0], alone}, "of a run of one rank");
  check_refused({alone, paths[0]}, "sluice compare");
  check_refused(write_made_ranks(folder, {.has_offsets = false}), "does not say how far its clock");
  CHECK_FALSE(open_rank_records({folder.file("none.db")}).ok());
  // In any order.
  CHECK(require_ok(open_rank_records({other[2], other[0], other[1]}))[2].rank == 2);
}

}  // namespace sluice::analyze
