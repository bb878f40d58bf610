#pragma once
// The steps beside which a chosen one stands (step_explanation.h says which).
//
// Thread contract: plain data and a free function.

#include <cstddef>
#include <string>
#include <vector>

#include "profiler/analyze/run_data.h"

namespace sluice::analyze {

struct UsualSteps {
  std::vector<std::size_t> indices;  // of all usual steps, in order
  TimeNs dur = 0;                    // their median
  TimeNs noise_ns = 0;               // of the whole run's steps around their stretches
  bool stands_out = false;           // the chosen step is an outlier of the run's trend
  std::vector<std::string> notes;    // sentences
  std::string why_none;
};

// `first`, `last`: indices of the chosen steps, both included. `first_with_operations`: steps
// before it are in the record without theirs.
UsualSteps usual_steps_of(const RunInfo& info, const std::vector<rundb::StepRow>& steps,
                          std::size_t first, std::size_t last, std::size_t first_with_operations);

// At most `count` of them, evenly.
std::vector<std::size_t> evenly_chosen(const std::vector<std::size_t>& indices, std::size_t count);

}  // namespace sluice::analyze
