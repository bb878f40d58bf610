#pragma once
// The steps beside which a chosen one stands (step_explanation.h says which).
//
// Thread contract: immutable after construction.

#include <cstddef>
#include <string>
#include <vector>

#include "profiler/analyze/run_data.h"
#include "profiler/analyze/trend.h"

namespace sluice::analyze {

struct UsualSteps {
  std::vector<std::size_t> indices;  // of all usual steps, in order
  TimeNs dur = 0;                    // their median
  TimeNs noise_ns = 0;               // of the whole run's steps around their stretches
  bool stands_out = false;           // the chosen step is an outlier of the run's trend
  std::vector<std::string> notes;    // sentences
  std::string why_none;
};

class UsualStepsOfRun {
 public:
  // All steps of the run, which outlive this. Those before `first_with_operations` (an index) are
  // in the record without theirs.
  UsualStepsOfRun(const RunInfo& info, const std::vector<rundb::StepRow>& steps,
                  std::size_t first_with_operations);

  // `first`, `last`: indices of the chosen steps, both included.
  UsualSteps beside(std::size_t first, std::size_t last) const;

 private:
  const RunInfo& info_;
  const std::vector<rundb::StepRow>& steps_;
  const std::size_t first_with_operations_;
  std::vector<std::size_t> knobs_;  // indices of the first steps with other settings
  Trend trend_;                     // of the steps' nanoseconds
};

// At most `count` of them, evenly.
std::vector<std::size_t> evenly_chosen(const std::vector<std::size_t>& indices, std::size_t count);

}  // namespace sluice::analyze
