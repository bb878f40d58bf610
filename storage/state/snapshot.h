#pragma once
// A commit that is kept: a state of its own in another folder, from which a run can be resumed as
// from the one it was taken of.
//
// Thread contract: a free function; nothing else writes to `store` meanwhile.

#include <functional>

#include "base/stops.h"
#include "storage/state/state_store.h"

namespace sluice::state {

struct SavedSnapshot {
  std::int64_t step = 0;
  std::int64_t size_bytes = 0;  // of the state's arrays
};

// Puts what else belongs to the state, if anything, into `folder`.
using AddToSnapshot = std::function<Status(const std::string& folder)>;

// Writes what `store` has committed into `into.directory`, which must not be there yet: one version
// of each subgroup, on as many devices, array by array through one buffer of at most 4 MiB, each
// compared with its checksum. The folder appears as a whole, durable unless `into` says otherwise,
// or not at all: on any error, such as a full disk, what was written is removed, and `store` is as
// it was. Resuming from it reserves the room for the second version. `stops` is asked before each
// buffer's worth; where it says so the error is ErrorCode::cancelled.
Result<SavedSnapshot> save_snapshot(StateStore& store, const StateStore::Options& into,
                                    const AddToSnapshot& add = {}, const Stops& stops = {});

}  // namespace sluice::state
