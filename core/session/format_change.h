#pragma once
// Going on with a state that was kept in another format (base/state_format.h): it is written anew
// beside the old one, which it then takes the place of. A crash at any instant leaves the one or
// the other; what it cuts is ended, or undone, when the state is next gone on with.
//
// Thread contract: free functions that block on the drives; the caller has the state not open.

#include <optional>

#include "base/state_format.h"
#include "base/status.h"
#include "base/stops.h"
#include "storage/state/state_store.h"

namespace sluice::plan {
struct RunPlan;
}

namespace sluice::session {

// Ends a change that a crash has cut while the new state took the place of the old one, which
// cannot be opened then.
Status finish_format_change(const state::StateStore::Options& options);

// The format that the state in `options.directory` had, where it was another one than the plan's;
// nothing else about it may differ. The residual of error feedback stays; kept commits go, since
// their slots do. Errors: ErrorCode::config with the first difference; ErrorCode::corrupt for
// damage; those of the drives; ErrorCode::cancelled, and then the state is as it was.
Result<std::optional<StateFormat>> change_format(const plan::RunPlan& plan,
                                                 const state::StateStore::Options& options,
                                                 state::StateIdentity wanted, const Stops& stops);

}  // namespace sluice::session
