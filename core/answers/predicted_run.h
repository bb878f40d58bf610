#pragma once
// What other settings would do to a recorded run: asked and answered.
//
// Thread contract: free function that reads a run database.

#include <string>
#include <vector>

#include "base/stops.h"
#include "profiler/answers/prediction.h"

namespace sluice::answers {

// These settings together, or every setting by itself where there are none. A record that nothing
// can be predicted of (another program's, too few steps) has the reason in `changes.unavailable`.
// Errors: those of opening; tune::check_predictable()'s and tune::Predictor::with()'s.
Result<PredictedRun> predicted_run(const std::string& database,
                                   const std::vector<std::string>& settings,
                                   const Stops& stops = {});

}  // namespace sluice::answers
