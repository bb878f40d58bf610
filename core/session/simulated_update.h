#pragma once
// The update of a session's step in simulated time: the session's schedule under the simulated
// clock, without payload.
//
// Thread contract: a free function; deterministic.

#include "base/status.h"

namespace sluice::plan {
struct RunPlan;
}

namespace sluice::session {

// Seconds from the first gradient to the last parameter, where gradients come as fast as they are
// taken; the mean over whole rounds of commits. Errors: those of offload::Assembly::take().
Result<double> simulated_update_seconds(const plan::RunPlan& plan);

}  // namespace sluice::session
