#pragma once
// By what the rates of kernels must be multiplied for simulation to charge what was recorded.
//
// Thread contract: free function.

#include "core/tune/detail/fit_simulation.h"

namespace sluice::tune::detail {

// `charged` is a step of `plan`. One factor a kernel and engine of which anything was recorded; for
// those of which nothing was, none.
std::vector<RateFactor> kernel_factors(const plan::RunPlan& plan, const ChargedStep& charged,
                                       const RecordedSteps& recorded);

}  // namespace sluice::tune::detail
