// Switches of threads as times in each state.

#include "profiler/sample/thread_times.h"

#include <catch2/catch.hpp>
#include <random>

namespace sluice::sample {
namespace {

using rundb::ProcessorTimeRow;

constexpr TimeNs kMs = 1'000'000;

ProcessorTimeRow sum_of(const std::vector<ProcessorTimeRow>& rows) {
  ProcessorTimeRow sum;
  for (const ProcessorTimeRow& row : rows) {
    CHECK(row.running + row.preempted + row.waiting == row.dur);
    CHECK(row.dur > 0);
    sum.dur += row.dur;
    sum.running += row.running;
    sum.preempted += row.preempted;
    sum.waiting += row.waiting;
  }
  return sum;
}

TEST_CASE("the states of a thread add up to its time") {
  ThreadTimes times;
  times.begin(1, 3 * kMs);
  times.change(1, ThreadState::running, 5 * kMs);     // waited 2
  times.change(1, ThreadState::preempted, 12 * kMs);  // ran 7
  times.change(1, ThreadState::running, 13 * kMs);    // preempted 1
  times.change(1, ThreadState::waiting, 100 * kMs);   // ran 87
  std::vector<ProcessorTimeRow> rows;
  times.take_rest(250 * kMs, rows);  // waited 150
  const ProcessorTimeRow sum = sum_of(rows);
  CHECK(sum.dur == 247 * kMs);
  CHECK(sum.running == 94 * kMs);
  CHECK(sum.preempted == 1 * kMs);
  CHECK(sum.waiting == 152 * kMs);
  // [3, 10) and [10, 20) are mixed; [20, 100) runs and [100, 250) waits.
  REQUIRE(rows.size() == 4);
  CHECK(rows[0].ts == 3 * kMs);
  CHECK(rows[1].ts == 10 * kMs);
  CHECK(rows[2].ts == 20 * kMs);
  CHECK(rows[2].running == 80 * kMs);
  CHECK(rows[3].waiting == 150 * kMs);
}

TEST_CASE("what a thread did before its first change follows from that") {
  ThreadTimes times;
  std::vector<ProcessorTimeRow> rows;
  times.begin(1, 0);
  times.change(1, ThreadState::waiting, 4 * kMs);  // it was on a processor
  times.begin(2, 0);
  times.change(2, ThreadState::running, 4 * kMs);  // it was not
  times.begin(3, 0);                               // never heard of
  times.begin(4, 0);
  times.seen_running(4, 2 * kMs);
  times.take_rest(4 * kMs, rows);
  REQUIRE(rows.size() == 4);
  CHECK(rows[0].running == 4 * kMs);
  CHECK(rows[1].waiting == 4 * kMs);
  CHECK(rows[2].waiting == 4 * kMs);
  CHECK(rows[3].running == 4 * kMs);
}

TEST_CASE("however often threads switch, a bin has one row a thread") {
  std::mt19937 random(5);
  ThreadTimes times;
  std::vector<ProcessorTimeRow> rows;
  times.begin(1, 0);
  const TimeNs end = 1000 * kMs;
  for (TimeNs ts = 0; ts < end; ts += static_cast<TimeNs>(random() % 50'000)) {
    times.change(1, static_cast<ThreadState>(1 + random() % 3), ts);
    if (random() % 1000 == 0) times.take_until(ts, rows);
  }
  times.take_rest(end, rows);
  CHECK(rows.size() <= 100);
  CHECK(sum_of(rows).dur == end);
  for (std::size_t i = 1; i < rows.size(); ++i) CHECK(rows[i].ts == rows[i - 1].end_ts());
}

TEST_CASE("a thread that does not change its state costs a row a second") {
  ThreadTimes times;
  std::vector<ProcessorTimeRow> rows;
  times.begin(1, 0);
  times.change(1, ThreadState::waiting, 0);
  for (TimeNs ts = 0; ts <= 10'000 * kMs; ts += 100 * kMs) times.take_until(ts, rows);
  CHECK(rows.size() == 10);
  CHECK(sum_of(rows).waiting == 10'000 * kMs);
}

TEST_CASE("times that go back count as now") {
  ThreadTimes times;
  std::vector<ProcessorTimeRow> rows;
  times.change(1, ThreadState::running, 10 * kMs);
  times.change(1, ThreadState::waiting, 20 * kMs);
  times.change(1, ThreadState::running, 15 * kMs);
  times.take_rest(30 * kMs, rows);
  const ProcessorTimeRow sum = sum_of(rows);
  CHECK(sum.dur == 20 * kMs);
  CHECK(sum.running == 20 * kMs);
}

}  // namespace
}  // namespace sluice::sample
