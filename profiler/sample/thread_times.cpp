#include "profiler/sample/thread_times.h"

#include <algorithm>
#include <utility>

namespace sluice::sample {
namespace {

using Row = rundb::ProcessorTimeRow;

void add(Row& row, ThreadState state, TimeNs dur) {
  row.dur += dur;
  switch (state) {
    case ThreadState::running:
      row.running += dur;
      break;
    case ThreadState::preempted:
      row.preempted += dur;
      break;
    case ThreadState::unknown:
    case ThreadState::waiting:
      row.waiting += dur;
      break;
  }
}

bool is_in_one_state(const Row& row) {
  return row.running == row.dur || row.preempted == row.dur || row.waiting == row.dur;
}

bool is_in_same_state(const Row& a, const Row& b) {
  return is_in_one_state(a) && is_in_one_state(b) && (a.running > 0) == (b.running > 0) &&
         (a.preempted > 0) == (b.preempted > 0);
}

void append(Row& row, const Row& next) {
  row.dur += next.dur;
  row.running += next.running;
  row.preempted += next.preempted;
  row.waiting += next.waiting;
}

Row empty_from(const Row& row) { return {.thread_id = row.thread_id, .ts = row.end_ts()}; }

// As what the time before a thread's first change counts.
ThreadState state_before(ThreadState changed_to) {
  return changed_to == ThreadState::running ? ThreadState::waiting : ThreadState::running;
}

}  // namespace

void ThreadTimes::begin(std::int64_t thread, TimeNs ts) {
  const Row empty{.thread_id = thread, .ts = ts};
  threads_.try_emplace(thread, Thread{.since = ts, .bin = empty, .whole = empty});
}

void ThreadTimes::change(std::int64_t thread, ThreadState state, TimeNs ts) {
  begin(thread, ts);
  Thread& known = threads_.at(thread);
  account(known, known.state == ThreadState::unknown ? state_before(state) : known.state, ts);
  known.state = state;
}

void ThreadTimes::seen_running(std::int64_t thread, TimeNs ts) {
  begin(thread, ts);
  Thread& known = threads_.at(thread);
  if (known.state == ThreadState::unknown) known.state = ThreadState::running;
}

void ThreadTimes::end(std::int64_t thread, TimeNs ts) {
  const auto known = threads_.find(thread);
  if (known == threads_.end()) return;
  account(known->second, known->second.state, ts);
  close_bin(known->second);
  close_whole(known->second);
  threads_.erase(known);
}

void ThreadTimes::take_until(TimeNs ts, std::vector<Row>& into) {
  for (auto& [id, thread] : threads_) {
    if (thread.state == ThreadState::unknown) continue;
    account(thread, thread.state, ts);
    if (thread.whole.dur >= kStretchNsMax) close_whole(thread);
  }
  into.insert(into.end(), rows_.begin(), rows_.end());
  rows_.clear();
}

void ThreadTimes::take_rest(TimeNs ts, std::vector<Row>& into) {
  while (!threads_.empty()) end(threads_.begin()->first, ts);
  into.insert(into.end(), rows_.begin(), rows_.end());
  rows_.clear();
}

// Whole bins in one state are one step, however many they are.
void ThreadTimes::account(Thread& thread, ThreadState state, TimeNs until) {
  while (thread.since < until) {
    const TimeNs bin_end = (thread.since / kBinNs + 1) * kBinNs;
    TimeNs to = std::min(until, bin_end);
    const bool begins_bin = thread.bin.dur == 0 && thread.since % kBinNs == 0;
    if (begins_bin && until >= bin_end) to = until / kBinNs * kBinNs;
    add(thread.bin, state, to - thread.since);
    thread.since = to;
    if (to >= bin_end) close_bin(thread);
  }
}

void ThreadTimes::close_bin(Thread& thread) {
  const Row bin = std::exchange(thread.bin, empty_from(thread.bin));
  if (thread.whole.dur > 0 && !is_in_same_state(thread.whole, bin)) close_whole(thread);
  if (thread.whole.dur == 0) {
    thread.whole = bin;
  } else {
    append(thread.whole, bin);
  }
  if (!is_in_one_state(thread.whole)) close_whole(thread);
}

void ThreadTimes::close_whole(Thread& thread) {
  const Row whole = std::exchange(thread.whole, empty_from(thread.whole));
  if (whole.dur > 0) rows_.push_back(whole);
}

}  // namespace sluice::sample
