#pragma once
// A recorded run and the platform fitted to it, as JSON.
//
// Thread contract: free function.

#include "core/answers/json.h"
#include "core/tune/fitted_run.h"

namespace sluice::answers {

// {run, mode, steps, steps_recorded, time_scale, seconds, rates, is_good, worst_phase, caveats};
// seconds are the recording's own clock's, rates the platform's.
Json to_json(const tune::FittedRun& fitted);

}  // namespace sluice::answers
