#pragma once
// How long each thread ran, waited or was preempted, from its switches: a row a bin of 10 ms in
// which a thread changed its state, and one row for each longer stretch in one state. So the rows
// are bounded however often threads switch; what is left out is the order within a bin.
//
// Thread contract: one thread at a time.

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "storage/rundb/rows.h"

namespace sluice::sample {

enum class ThreadState : std::uint8_t { unknown, running, preempted, waiting };

class ThreadTimes {
 public:
  static constexpr TimeNs kBinNs = 10'000'000;
  // A stretch in one state is written when it is this long, so that a kill loses no more of it.
  static constexpr TimeNs kStretchNsMax = 1'000'000'000;

  // The thread is there from `ts` on, in a state that its first change says: whoever leaves a
  // processor was on it.
  void begin(std::int64_t thread, TimeNs ts);
  // It is in `state` from `ts` on. A time that is older than the thread's last one counts as that.
  void change(std::int64_t thread, ThreadState state, TimeNs ts);
  // A sample found it running.
  void seen_running(std::int64_t thread, TimeNs ts);
  void end(std::int64_t thread, TimeNs ts);

  // Accounts what is known up to `ts`, and appends the rows that are whole.
  void take_until(TimeNs ts, std::vector<rundb::ProcessorTimeRow>& into);
  // The same for all: nothing comes after. A thread that never changed was waiting.
  void take_rest(TimeNs ts, std::vector<rundb::ProcessorTimeRow>& into);

 private:
  struct Thread {
    ThreadState state = ThreadState::unknown;
    TimeNs since = 0;                    // accounted up to here
    rundb::ProcessorTimeRow bin = {};    // from a bin's begin, or the thread's, up to `since`
    rundb::ProcessorTimeRow whole = {};  // in one state, up to the bin
  };

  void account(Thread& thread, ThreadState state, TimeNs until);
  void close_bin(Thread& thread);
  void close_whole(Thread& thread);

  std::map<std::int64_t, Thread> threads_;
  std::vector<rundb::ProcessorTimeRow> rows_;
};

}  // namespace sluice::sample
