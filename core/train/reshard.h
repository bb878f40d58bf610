#pragma once
// Going on with other ranks than those that kept the state: more, fewer, or with other parts of it;
// with several ranks also with the state in another format (a run of one changes it by
// core/session/format_change.h).
// Each rank writes the part that it has now, out of the parts of the ranks before, in a folder
// beside its old one; once all have, the new state takes the place of the old in one step, which is
// done again if a crash cuts it (docs/ranks.md). Bit for bit: nothing is
// computed, unless the format is compact, which rounds.
//
// The folders of all ranks must be reachable from each under the same paths. A rank whose own
// folder has what it needs looks at no other.
//
// Thread contract: the schedule's thread; nobody has any of the states open. Collective over ranks.

#include <cstdint>
#include <string>

#include "base/stops.h"

namespace sluice::plan {
struct RunPlan;
}
namespace sluice::state {
struct StateIdentity;
}

namespace sluice::train {

class Ranks;

struct Resharded {
  bool has_changed = false;
  std::int64_t step = 0;        // of the state; where it has changed
  std::string from;             // "in 8 parts", "whole"
  bool drops_residual = false;  // of error feedback; known to the first rank alone
};

// After it this rank's folder has the state that the plan asks for, at a step that all have, or the
// commit after it. `ranks`: null for a run of one. Errors: ErrorCode::not_found if there is no
// whole state anywhere; those of reading, of writing, and of other ranks; ErrorCode::cancelled if
// `stops` of any rank says so before all have written theirs, and the states are as they were.
Result<Resharded> reshard(const plan::RunPlan& plan, const state::StateIdentity& wanted,
                          Ranks* ranks, const Stops& stops = {});

}  // namespace sluice::train
