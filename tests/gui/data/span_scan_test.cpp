#include "gui/data/span_scan.h"

#include "profiler/report/merged_record.h"
#include "tests/gui/data/feed_fixture.h"
#include "tests/profiler/made_ranks.h"

namespace sluice::gui {
namespace {

const StatisticRow& row_of(const SpanStatistics& statistics, const RunFacts& facts, GroupBy by,
                           const std::string& name, std::int32_t of) {
  for (const StatisticRow& row : statistics.rows[static_cast<std::size_t>(by)]) {
    if (facts.string_of(row.name_id) == name && row.of == of) return row;
  }
  FAIL("no row of " << name);
  throw 0;  // not reached: FAIL leaves the test
}

}  // namespace

TEST_CASE("statistics agree with what SQL says of the same file") {
  const TempFolder folder;
  write_made_run(folder.file("run.db"), {.step_count = 4});
  auto reader = require_ok(rundb::Reader::open(folder.file("run.db")));
  const RunFacts facts = require_ok(load_run_facts(*reader));
  const std::vector<rundb::StepRow> steps = require_ok(reader->steps());
  SpanScan scan;
  int rounds = 0;
  while (require_ok(scan.advance(*reader, facts, 5))) rounds += 1;
  CHECK(rounds > 3);
  const auto statistics = scan.statistics(steps, 36);
  CHECK(statistics->seen_count == 36);
  for (const rundb::SpanTotals& total : require_ok(reader->span_totals())) {
    const StatisticRow& row = row_of(*statistics, facts, GroupBy::name, total.name, -1);
    CHECK(row.count == total.count);
    CHECK(row.sum_ns == total.dur_total);
    CHECK(row.max_ns == total.dur_max);
    CHECK(row.bytes == total.bytes + total.padding_bytes);
    CHECK(row.p99_ns <= row.max_ns);
  }
  const StatisticRow& on_one = row_of(*statistics, facts, GroupBy::device, "state_write", 1);
  CHECK(on_one.count == 4);
  CHECK(on_one.sum_ns == 80 * kMs);
  CHECK(on_one.limit_bytes_per_s == 2e9);
  CHECK(row_of(*statistics, facts, GroupBy::layer, "forward", 1).count == 4);
  CHECK(row_of(*statistics, facts, GroupBy::subgroup, "update", 4).count == 8);
  CHECK(row_of(*statistics, facts, GroupBy::subgroup, "forward", -1).count == 4);
}

TEST_CASE("what of its limit a link had is of the time in which anything was under way") {
  const TempFolder folder;
  auto writer = require_ok(rundb::Writer::create(folder.file("run.db"), rundb::IfExists::refuse));
  require_ok(writer->write_facts(
      {.links = {
           {.id = 0, .name = "csd0.drive", .read_bytes_per_s = 1e9, .write_bytes_per_s = 1e9}}}));
  const std::int64_t track =
      writer->track_id(std::nullopt, "device", "csd0 state_write",
                       std::array{rundb::TrackLink{0, rundb::Direction::write}});
  rundb::Batch batch;
  // Four side by side for 100 ns, 20 bytes each, and one of another name alone, of half the limit.
  for (std::int64_t i = 0; i < 5; ++i) {
    batch.spans.push_back({.track_id = track,
                           .name_id = writer->string_id(i < 4 ? "state_write" : "state_fill"),
                           .ts = i < 4 ? 1000 : 2000,
                           .dur = 100,
                           .step_id = 0,
                           .subgroup_id = i,
                           .device_id = 0,
                           .bytes = i < 4 ? 20 : 50});
  }
  require_ok(writer->append(batch));
  require_ok(writer->close());
  auto reader = require_ok(rundb::Reader::open(folder.file("run.db")));
  const RunFacts facts = require_ok(load_run_facts(*reader));
  SpanScan scan;
  while (require_ok(scan.advance(*reader, facts, 2))) {
  }
  const auto statistics = scan.statistics({}, 5);
  const StatisticRow& all = row_of(*statistics, facts, GroupBy::name, "state_write", -1);
  CHECK(all.sum_ns == 400);
  CHECK(all.active_ns == 100);
  CHECK(all.share_of_limit().value_or(0) == Approx(0.8));
  const StatisticRow& of_device = row_of(*statistics, facts, GroupBy::device, "state_write", 0);
  CHECK(of_device.share_of_limit().value_or(0) == Approx(0.8));
  // A part of what went side by side has no share of its own.
  for (const std::int32_t subgroup : {0, 2}) {
    const StatisticRow& part =
        row_of(*statistics, facts, GroupBy::subgroup, "state_write", subgroup);
    CHECK_FALSE(part.share_of_limit().has_value());
  }
  const StatisticRow& alone = row_of(*statistics, facts, GroupBy::subgroup, "state_fill", 4);
  CHECK(alone.share_of_limit().value_or(0) == Approx(0.5));
}

TEST_CASE("the statistics of a range are of the spans that begin in it") {
  const TempFolder folder;
  write_made_run(folder.file("run.db"), {.step_count = 4});
  auto reader = require_ok(rundb::Reader::open(folder.file("run.db")));
  const RunFacts facts = require_ok(load_run_facts(*reader));
  const std::vector<rundb::StepRow> steps = require_ok(reader->steps());
  const TimeNs cut = steps[2].ts;
  const auto count_of = [&](ScanRange range) {
    SpanScan scan(range);
    while (require_ok(scan.advance(*reader, facts, 5))) {
    }
    const auto statistics = scan.statistics(steps, 0);
    CHECK(statistics->range == range);
    std::int64_t in_rows = 0;
    for (const StatisticRow& row : statistics->rows[0]) in_rows += row.count;
    CHECK(in_rows == statistics->seen_count);
    return fmt::format("{}\n", statistics->seen_count);
  };
  const auto said_by_sql = [&](const std::string& where) {
    return rundb::table_of(*reader, "SELECT count(*) FROM span WHERE " + where);
  };
  CHECK(count_of({.begin = cut}) == said_by_sql(fmt::format("ts >= {}", cut)));
  CHECK(count_of({.end = cut}) == said_by_sql(fmt::format("ts < {}", cut)));
  const TimeNs end = cut + steps[2].dur / 2;
  const std::string both = count_of({cut, end});
  CHECK(both == said_by_sql(fmt::format("ts >= {} AND ts < {}", cut, end)));
  CHECK(both != "0\n");
  CHECK(count_of({end + 3'600'000'000'000, end + 3'600'000'000'001}) == "0\n");
}

TEST_CASE("more subgroups than are shown are one row, and nothing is lost of the sums") {
  const TempFolder folder;
  auto writer = require_ok(rundb::Writer::create(folder.file("run.db"), rundb::IfExists::replace));
  const std::int64_t track = writer->track_id(std::nullopt, "device", "csd0");
  rundb::Batch batch;
  constexpr std::int64_t kSpans = static_cast<std::int64_t>(kSubgroupRowsMax) + 100;
  for (std::int64_t i = 0; i < 2 * kSpans; ++i) {
    batch.spans.push_back({.track_id = track,
                           .name_id = writer->string_id("update"),
                           .ts = i,
                           .dur = 10,
                           .step_id = 0,
                           .subgroup_id = i % kSpans});
  }
  require_ok(writer->append(batch));
  require_ok(writer->close());
  auto reader = require_ok(rundb::Reader::open(folder.file("run.db")));
  const RunFacts facts = require_ok(load_run_facts(*reader));
  SpanScan scan;
  while (require_ok(scan.advance(*reader, facts, 1000))) {
  }
  const auto statistics = scan.statistics({}, 0);
  CHECK(row_of(*statistics, facts, GroupBy::subgroup, "update", 7).count == 2);
  CHECK(row_of(*statistics, facts, GroupBy::subgroup, "update", kFurtherOnes).count == 200);
  CHECK(row_of(*statistics, facts, GroupBy::name, "update", -1).count == 2 * kSpans);
}

TEST_CASE("a merged record's statistics are those of each rank, and together those of all") {
  const TempFolder folder;
  // Clocks that run alike, so that a duration is the same by each of them.
  const auto records =
      require_ok(analyze::open_rank_records(write_made_ranks(folder, {.drift_ns = {0, 0, 0}})));
  require_ok(report::merge_records(records, folder.file("all.db"), report::IfExists::refuse));
  auto reader = require_ok(rundb::Reader::open(folder.file("all.db")));
  const RunFacts facts = require_ok(load_run_facts(*reader));
  SpanScan scan;
  while (require_ok(scan.advance(*reader, facts, 50))) {
  }
  const auto all = scan.statistics(require_ok(reader->steps()), 216);
  CHECK(all->seen_count == 216);
  for (const analyze::RankRecord& record : records) {
    const RunFacts own_facts = require_ok(load_run_facts(*record.reader));
    SpanScan own_scan;
    while (require_ok(own_scan.advance(*record.reader, own_facts, 50))) {
    }
    const auto own = own_scan.statistics(record.steps, 0);
    CHECK(own->rows[static_cast<std::size_t>(GroupBy::rank)].empty());
    for (const StatisticRow& row : own->rows[static_cast<std::size_t>(GroupBy::name)]) {
      const StatisticRow& merged =
          row_of(*all, facts, GroupBy::rank, own_facts.string_of(row.name_id), record.rank);
      CHECK(merged.count == row.count);
      CHECK(std::abs(merged.sum_ns - row.sum_ns) <= row.count);  // rounded
    }
  }
  CHECK(row_of(*all, facts, GroupBy::name, "forward", -1).count == 36);
  for (const StatisticRow& row : all->rows[static_cast<std::size_t>(GroupBy::name)])
    CHECK(facts.string_of(row.name_id) != "step");
}

TEST_CASE("phases of steps are those of the view step_phase") {
  const TempFolder folder;
  write_made_run(folder.file("run.db"), {.step_count = 5});
  auto reader = require_ok(rundb::Reader::open(folder.file("run.db")));
  const RunFacts facts = require_ok(load_run_facts(*reader));
  SpanScan scan;
  while (require_ok(scan.advance(*reader, facts, 7))) {
  }
  const auto statistics = scan.statistics(require_ok(reader->steps()), 0);
  std::string ours;
  for (const PhaseRow& row : statistics->phases) {
    ours +=
        fmt::format("{} | {} | {} | {}\n", row.step, row.dur_ns[0], row.dur_ns[1], row.dur_ns[2]);
  }
  CHECK(ours == rundb::table_of(*reader,
                                "SELECT step_id, forward_dur, backward_dur, update_dur "
                                "FROM step_phase ORDER BY step_id"));
  CHECK_FALSE(ours.empty());
}

}  // namespace sluice::gui
