#pragma once
// Predictions of a run, in the form in which commands, pages and the window show them.
//
// Thread contract: free functions.

#include <string>
#include <vector>

#include "core/tune/prediction.h"
#include "profiler/analyze/turn_next.h"

namespace sluice::tune {

// Predictor::all(), each single change with why it should help, or why nothing is predicted.
analyze::PredictedChanges predicted_changes(const Predictor& predictor);

// These settings together, alone in `each`, without words of why. Errors: Predictor::with()'s.
Result<analyze::PredictedChanges> predicted_together(const Predictor& predictor,
                                                     const std::vector<std::string>& settings);

// predicted_changes() of a run database.
analyze::PredictedChanges predict(const std::string& database);

}  // namespace sluice::tune
