#pragma once
// A replayed record and what changes of the machine would do to it, as JSON.
//
// Thread contract: free function.

#include "core/answers/json.h"
#include "core/replay/what_if_answer.h"

namespace sluice::answers {

// {steps, has_steps, operations, seconds: {recorded, replayed, error}, busy_share, limit,
// explains, why_not, links: [...], changes: [{change, seconds, factor, limit}], notes, stand_ins,
// clock, simulated}; seconds are a step's, by the recording's own clock, as are rates. `explains`
// false: no changes.
Json to_json(const replay::ReplayAnswer& answer);

}  // namespace sluice::answers
