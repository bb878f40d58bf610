// Records of perf rings as rows of the run database.

#include "profiler/sample/sampled_rows.h"

#include <catch2/catch.hpp>

namespace sluice::sample {
namespace {

constexpr TimeNs kMillisecond = 1'000'000;
constexpr std::uint32_t kPid = 100;

PerfRecord record(PerfKind kind, std::uint32_t tid, TimeNs ts) {
  return {.kind = kind, .pid = kPid, .tid = tid, .ts = ts};
}

TEST_CASE("samples and switches become rows of their threads") {
  SampledRows rows(kPid);
  rows.add_thread(100, "main", 0);
  std::vector<PerfRecord> records = {record(PerfKind::switched_out, 100, 20 * kMillisecond),
                                     record(PerfKind::sample, 100, 30 * kMillisecond)};
  records[1].chain = {1};
  rows.add(records);
  const rundb::SampleRows taken = rows.take_rest(40 * kMillisecond);
  REQUIRE(taken.threads.size() == 1);
  CHECK(taken.threads[0].tid == 100);
  CHECK(taken.threads[0].name == "main");
  REQUIRE(taken.samples.size() == 1);
  CHECK(taken.samples[0].thread_id == taken.threads[0].id);
  CHECK(taken.samples[0].ts == 30 * kMillisecond);
  REQUIRE(taken.times.size() == 2);
  CHECK(taken.times[0].running == 20 * kMillisecond);
  CHECK(taken.times[1].waiting == 20 * kMillisecond);
  CHECK(rows.sample_count() == 1);
}

TEST_CASE(
    "a thread has its parent's name until it gets one, and a number that comes again is "
    "another thread") {
  SampledRows rows(kPid);
  rows.add_thread(100, "main", 0);
  std::vector<PerfRecord> records = {record(PerfKind::thread_begins, 101, 1 * kMillisecond),
                                     record(PerfKind::name, 101, 2 * kMillisecond),
                                     record(PerfKind::thread_ends, 101, 3 * kMillisecond),
                                     record(PerfKind::thread_begins, 101, 4 * kMillisecond)};
  records[0].parent_tid = records[3].parent_tid = 100;
  records[1].name = "worker";
  rows.add(records);
  const rundb::SampleRows taken = rows.take_rest(5 * kMillisecond);
  std::map<std::int64_t, std::string> names;  // the last of each
  for (const rundb::SampledThreadRow& row : taken.threads) names[row.id] = row.name;
  CHECK(names == std::map<std::int64_t, std::string>{{1, "main"}, {2, "worker"}, {3, "main"}});
}

TEST_CASE("records of other processes are left out, what the kernel lost is counted") {
  SampledRows rows(kPid);
  std::vector<PerfRecord> records = {record(PerfKind::sample, 7, 1 * kMillisecond),
                                     record(PerfKind::lost, 0, 2 * kMillisecond)};
  records[0].pid = 7;
  records[0].chain = {1};
  records[1].pid = 7;
  records[1].lost_count = 5;
  rows.add(records);
  const rundb::SampleRows taken = rows.take_rest(3 * kMillisecond);
  CHECK(taken.samples.empty());
  CHECK(taken.threads.empty());
  CHECK(rows.lost_count() == 5);
}

}  // namespace
}  // namespace sluice::sample
