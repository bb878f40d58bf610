#pragma once
// Predictions of a run, in the form in which commands, pages and the window show them.
//
// Thread contract: free functions.

#include <string>

#include "core/tune/prediction.h"
#include "profiler/analyze/turn_next.h"

namespace sluice::tune {

// Without words of why.
analyze::PredictedChange predicted_change(const Prediction& prediction);

// Its caveats in one line.
std::string caution_of(const Predictor& predictor);

// Predictor::all(), each single change with why it should help, or why nothing is predicted.
analyze::PredictedChanges predicted_changes(const Predictor& predictor);

// The same of a run database.
analyze::PredictedChanges predict(const std::string& database);

}  // namespace sluice::tune
