#pragma once
// A state goes back, while nobody has it open: by one commit, or to one that is kept.
//
// Thread contract: free functions that block on the drives.

#include "storage/state/state_store.h"

namespace sluice::state {

// The commit before the last one is the last one again, durably, if it is of `step`; ok if the
// last one is. For ranks that have committed one step more than others when all ended: whoever
// calls it knows that nothing was written over that version since (checksums would tell). Errors:
// ErrorCode::not_found, with the steps that there are.
Status return_to(const StateStore::Options& options, std::int64_t step);

// A kept commit is the last one again, durably; it stays kept. Ok if it is the last one. Errors:
// ErrorCode::not_found, with the commits that there are.
Status return_to_kept(const StateStore::Options& options, const CommitId& id);

}  // namespace sluice::state
