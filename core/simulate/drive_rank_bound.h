#pragma once
// How short a rank's step with its state on drives can be at best, without simulating it: sums of
// what is done one after the other. Never above the simulated step (tests/core/simulate/
// drive_rank_test.cpp), so a plan loses nothing by passing over what is above the best.
//
// Thread contract: free function.

#include "core/simulate/sharded_run.h"

namespace sluice::plan {
struct RunPlan;
}

namespace sluice::simulate {

// `plan` of several ranks or of one; the memory is left to the caller.
DriveChoice drive_rank_bound(const plan::RunPlan& plan);

}  // namespace sluice::simulate
