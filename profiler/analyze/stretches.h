#pragma once
// The stretches of a run between changes of its knobs, side by side: what each change brought.
//
// Thread contract: free functions. Reads the bytes of all steps in one query.

#include <cstdint>
#include <string>
#include <vector>

#include "profiler/analyze/run_data.h"
#include "storage/rundb/lateness.h"

namespace sluice::analyze {

struct Stretch {
  std::int64_t first_step = 0;  // of those that ended
  std::int64_t last_step = 0;
  std::string settings;   // in force: "csd · nbuffer", and what else was changed: "density 0.05"
  std::size_t steps = 0;  // that count: without the first two, and without those that were skipped
  TimeNs dur = 0;         // their median
  TimeNs noise = 0;       // analyze::noise_of them
  // Payload over the link that devices share, a step (means of the steps that count).
  double read_bytes = 0;
  double write_bytes = 0;
  double speed_up = 1;               // the first stretch's time, over this one's
  rundb::LatenessSum lateness = {};  // of all its steps
  // Its time, or that of the first stretch, is partly this computer's.
  bool is_speed_up_late = false;
};

// In order; those with no step that counts are left out. A run that never changed has one.
Result<std::vector<Stretch>> stretches_of(rundb::Reader& reader, const RunInfo& info,
                                          const std::vector<rundb::StepRow>& steps);

// Beneath the speed-ups: which of them are marked, and what would do; "" where none is.
std::string late_speed_up_words(const std::vector<Stretch>& stretches, const std::string& mark,
                                double needed_time_scale);

// How many it would have.
std::size_t countable_stretches(const RunInfo& info, const std::vector<rundb::StepRow>& steps);

}  // namespace sluice::analyze
