// All ranks' records as one database: nothing is lost on the way, times are rank 0's, and what its
// analysis says of rank 0 is, to the bit, what rank 0's own record says.

#include "profiler/report/merged_record.h"

#include <catch2/catch.hpp>
#include <filesystem>

#include "profiler/analyze/run_analysis.h"
#include "tests/profiler/made_ranks.h"

namespace sluice::report {
namespace {

using rundb::require_ok;
using rundb::table_of;

struct Merged {
  explicit Merged(const MadeRanks& made = {}) : paths(write_made_ranks(folder, made)) {
    counts = require_ok(
        merge_records(require_ok(analyze::open_rank_records(paths)), path, IfExists::refuse));
    reader = require_ok(rundb::Reader::open(path));
    info = require_ok(analyze::load_run_info(*reader));
  }
  rundb::TempFolder folder;
  std::string path = folder.file("all.db");
  std::vector<std::string> paths;
  MergedCounts counts;
  std::unique_ptr<rundb::Reader> reader;
  analyze::RunInfo info;
};

analyze::RunAnalysis analysis_of(const std::string& path) {
  const auto reader = require_ok(rundb::Reader::open(path));
  const auto info = require_ok(analyze::load_run_info(*reader));
  return require_ok(analyze::analyze_run(*reader, info));
}

}  // namespace

TEST_CASE("a merged record has all operations, by rank 0's clock, on tracks named by rank") {
  Merged merged;
  // 5 operations a step, one more of rank 1; and the steps of two ranks.
  CHECK(merged.counts.spans == 12 * (5 + 6 + 5) + 2 * 12);
  CHECK(merged.counts.flows == 3 * 12 * 2);
  CHECK(table_of(*merged.reader, "SELECT count(*), min(id), max(id) FROM span") ==
        "216 | 1 | 216\n");
  CHECK(table_of(*merged.reader, "SELECT count(*) FROM counter") == "36\n");
  CHECK(table_of(*merged.reader, "SELECT name FROM track WHERE parent_id IS NULL ORDER BY name") ==
        "rank 0: compute\nrank 0: csd0\nrank 0: host\nrank 1: compute\nrank 1: csd0\n"
        "rank 1: host\nrank 1: steps\nrank 2: compute\nrank 2: csd0\nrank 2: host\n"
        "rank 2: steps\n");
  // All forwards of a step begin together, whatever the ranks' clocks showed.
  CHECK(table_of(*merged.reader,
                 "SELECT count(*) FROM (SELECT max(span.ts) - min(span.ts) AS apart, count(*) AS n "
                 "FROM span JOIN string ON string.id = name_id WHERE value = 'forward' "
                 "GROUP BY step_id) WHERE apart <= 2 AND n = 3") == "12\n");
  CHECK(table_of(*merged.reader, "SELECT name FROM link ORDER BY id") ==
        "csd0.drive\nrank 1: csd0.drive\nrank 2: csd0.drive\n");
  CHECK(table_of(*merged.reader, "SELECT count(DISTINCT device_id) FROM span") == "1\n");
  CHECK(table_of(*merged.reader, "SELECT count(*) FROM clock_snapshot") == "1\n");
}

TEST_CASE("flows of a merged record join the same operations as before") {
  Merged merged;
  const std::string joined =
      "SELECT a.value, b.value, count(*) FROM flow JOIN span f ON f.id = from_span JOIN span t ON "
      "t.id = to_span JOIN string a ON a.id = f.name_id JOIN string b ON b.id = t.name_id "
      "WHERE f.step_id = t.step_id GROUP BY 1, 2 ORDER BY 1, 2";
  CHECK(table_of(*merged.reader, joined) ==
        "backward | all_reduce | 36\nforward | backward | 36\n");
}

TEST_CASE("a merged record says of rank 0 what its own record says, to the bit") {
  const Merged merged;
  const analyze::RunAnalysis own = analysis_of(merged.paths[0]);
  const analyze::RunAnalysis all = analysis_of(merged.path);
  REQUIRE(own.has_spans());
  CHECK(all.steps == own.steps);
  CHECK(all.dur == own.dur);
  CHECK(all.share == own.share);
  CHECK(all.overlap.both_ns == own.overlap.both_ns);
  CHECK(all.overlap.compute_ns == own.overlap.compute_ns);
  REQUIRE(all.links.size() == own.links.size());
  CHECK(all.links.front().bytes == own.links.front().bytes);
  REQUIRE(all.devices.size() == own.devices.size());
  CHECK(all.devices.front().busy_ns == own.devices.front().busy_ns);
  CHECK_FALSE(own.ranks);
}

TEST_CASE("ranks are the same to the bit in a merged record and in their own") {
  // Each rank knows its clock to another bound.
  const Merged merged({.late_ns = {0, 4'000, 40'000'000}, .bound_ns = 2'000});
  const analyze::RunAnalysis all = analysis_of(merged.path);
  REQUIRE(all.ranks);
  const auto own = require_ok(
      analyze::analyze_ranks(require_ok(analyze::open_rank_records(merged.paths)), all.steps));
  CHECK(all.ranks->straggler == 2);
  CHECK(analyze::rank_findings(*all.ranks) == analyze::rank_findings(own));
  CHECK(all.ranks->close_count == own.close_count);
  CHECK(all.ranks->bound_ns == own.bound_ns);
  for (int rank = 0; rank < 3; ++rank) {
    CHECK(all.ranks->of(rank).step_ns == own.of(rank).step_ns);
    CHECK(all.ranks->of(rank).waiting_ns == own.of(rank).waiting_ns);
    CHECK(all.ranks->of(rank).exposed_ns == own.of(rank).exposed_ns);
    CHECK(all.ranks->of(rank).awaited_ns == own.of(rank).awaited_ns);
  }
}

TEST_CASE("what any rank lost is lost in the merged record") {
  const Merged whole;
  CHECK(analysis_of(whole.path).answers.front().outcome == analyze::Outcome::nothing_found);
  const Merged lossy({.lost_count = {0, 3, 4}});
  CHECK(analysis_of(lossy.path).answers.front().outcome == analyze::Outcome::answer);
  CHECK(table_of(*lossy.reader, "SELECT value FROM stat WHERE name = '" +
                                    std::string(rundb::kRecordsDropped) + "'") == "7\n");
}

TEST_CASE("a merge replaces nothing unasked, is not merged again, and leaves nothing half done") {
  Merged merged;
  const auto records = require_ok(analyze::open_rank_records(merged.paths));
  CHECK_FALSE(merge_records(records, merged.path, IfExists::refuse).ok());
  CHECK(merge_records(records, merged.path, IfExists::replace).ok());
  const auto again = require_ok(analyze::open_rank_records({merged.path}));
  CHECK(again.size() == 3);
  CHECK_FALSE(merge_records(again, merged.folder.file("again.db"), IfExists::refuse).ok());
  CHECK_FALSE(analyze::open_rank_records({merged.path, merged.paths[1]}).ok());
  const std::string nowhere = merged.folder.file("none/all.db");
  CHECK_FALSE(merge_records(records, nowhere, IfExists::refuse).ok());
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(merged.path).parent_path())) {
    CHECK(entry.path().extension() == ".db");
  }
}

TEST_CASE("a merge that is asked to stop stops, and leaves nothing") {
  const rundb::TempFolder folder;
  const auto records = require_ok(analyze::open_rank_records(write_made_ranks(folder)));
  std::stop_source stop;
  stop.request_stop();
  const auto counts =
      merge_records(records, folder.file("all.db"), IfExists::refuse, {}, stop.get_token());
  REQUIRE_FALSE(counts.ok());
  CHECK(counts.error().code() == ErrorCode::cancelled);
  for (const auto& entry : std::filesystem::directory_iterator(folder.file(""))) {
    CHECK(entry.path().filename().string().find("all") == std::string::npos);
  }
}

}  // namespace sluice::report
