#pragma once
// overlap=exact: what a session keeps from one step to the next of what is done ahead.
//
// Thread contract: the schedule's thread.

#include "core/session/session.h"
#include "core/session/speculation_policy.h"

namespace sluice::session {

struct StepAhead {
  SpeculationPolicy policy = SpeculationPolicy();
  StepRequest expected = {};  // what the program has said, or the step before
};

}  // namespace sluice::session
