#pragma once
// Conditions on a run that is followed: which begin to hold, and what says so.
//
// A condition holds from the step where it is met until a step where it is not; only its begin is
// told. What a record had when it was opened is judged as if it came step by step.
//
// Thread contract: one thread at a time.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "profiler/watch/condition.h"
#include "profiler/watch/run_follower.h"

namespace sluice::watch {

struct Event {
  std::string condition;  // as it was asked for
  std::string time;       // "2026-11-22 02:40:00", UTC
  std::int64_t step = 0;  // from 1; 0: none has ended
  double value = 0;       // of the figure: seconds, a loss, a count
  std::string words;      // the evidence, with the numbers of the steps
};

class Watcher {
 public:
  explicit Watcher(std::vector<Condition> conditions);

  // Judges what the follower's last look() brought. `now_ts` is of the clock of a live run
  // (base/clock.h).
  std::vector<Event> judge(RunFollower& run, TimeNs now_ts);

 private:
  struct Watched {
    Condition condition;
    bool holds = false;
    std::optional<std::int64_t> stalled_after = {};  // the step; told once of each
  };
  void judge_step(Watched& watched, RunFollower& run, std::size_t index,
                  std::vector<Event>& events);
  void judge_gap(Watched& watched, RunFollower& run, std::size_t index, TimeNs until_ts,
                 std::vector<Event>& events);
  void judge_losses(Watched& watched, RunFollower& run, std::vector<Event>& events);

  std::vector<Watched> watched_;
};

}  // namespace sluice::watch
