#pragma once
// Which steps of two runs are laid beside one another.
//
// Thread contract: free functions.

#include <string>
#include <vector>

#include "storage/rundb/rows.h"

namespace sluice::report::detail {

struct StepPair {
  rundb::StepRow a;
  rundb::StepRow b;
  std::string why;  // "nearest to both medians"
};

// The common step whose times are nearest to both medians, with its neighbours. Where the runs have
// none in common, the median step of each. None where a run has no step.
std::vector<StepPair> paired_steps(const std::vector<rundb::StepRow>& a,
                                   const std::vector<rundb::StepRow>& b);

}  // namespace sluice::report::detail
