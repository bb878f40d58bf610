#pragma once
// The model of a run whose program computed its gradients itself: its tensors, which are in the
// record, and what it was recorded to take for them.
//
// Thread contract: free functions.

#include <string>

#include "core/tune/recorded_run.h"

namespace sluice::tune {

// By the key `tensors` of a record's meta (core/session/session_settings.h). ErrorCode::config: it
// is not readable.
Result<RecordedModel> model_of_program(const std::string& tensors,
                                       const settings::RunConfig& config);

// The mean of the middle half of the steps. All that a program does before its backward, in the
// last layer's forward: a program waits for all parameters first. ErrorCode::config: it recorded
// no forward or no backward.
Result<ProgramCosts> costs_of_program(const RecordedSteps& steps, std::int32_t layer_count);

}  // namespace sluice::tune
