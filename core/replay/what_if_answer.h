#pragma once
// A recorded run, replayed: how well the replay tells of the recording, and what changes of the
// machine would do to it.
//
// Thread contract: free functions.

#include <span>
#include <string>
#include <vector>

#include "core/replay/replayed.h"
#include "core/replay/what_if.h"

namespace sluice::replay {

// From here on nothing is said of other machines. Both are choices: they bound what a change could
// be wrong by.
inline constexpr double kErrorMax = 0.15;
inline constexpr double kUnexplainedMax = 0.3;  // of the time, in which no operation was under way

struct ChangeAnswer {
  std::string change;
  double step_seconds = 0;
  double factor = 1;  // faster than the replay of the machine as it was
  Busy limit;         // the busiest then; no name: nothing was busy
};

struct ReplayAnswer {
  std::size_t step_count = 1;
  bool has_steps = true;  // false: the whole run counts as one
  std::size_t operation_count = 0;
  double recorded_seconds = 0;  // a step
  double replayed_seconds = 0;
  double busy_share = 0;
  Busy limit;
  std::string why_not;              // why no change is answered; empty: the graph explains the time
  std::vector<ModelledLink> links;  // those that something crossed
  // Each change by itself, and all together where there are several.
  std::vector<ChangeAnswer> changes;
  std::vector<std::string> notes;  // what the changes leave out, a sentence each
  std::string stand_ins;           // for hardware, in the recording
  std::string clock_note;          // whose seconds these are, where not the platform's

  double error() const { return replayed_seconds / recorded_seconds - 1; }
};

// Errors: those of load_window() and of apply().
Result<ReplayAnswer> replay_record(rundb::Reader& reader, std::span<const Change> changes);

}  // namespace sluice::replay
