#pragma once
// Asking a live run for something, and waiting for what becomes of it: what `sluice set`,
// `sluice snapshot`, `sluice tune --apply` and `sluice mcp` have in common.
//
// Thread contract: one thread; `stops` ends the waiting, for which it is asked every kLiveTurn.

#include <memory>
#include <string>

#include "base/status.h"
#include "base/stops.h"
#include "core/control/control_client.h"

namespace sluice::control {

inline constexpr std::chrono::milliseconds kLiveAnswer{5000};
inline constexpr std::chrono::milliseconds kLiveTurn{200};  // how often Ctrl-C is looked at

// By the run's database, or the socket beside it. ErrorCode::not_found where no run listens.
Result<std::unique_ptr<ControlClient>> connect_to_run(
    const std::string& database, std::chrono::milliseconds timeout = kLiveAnswer);

// Knobs to be changed together. The number of the change, for await_change(), or why the run
// refuses it.
Result<Message> ask_for_change(ControlClient& client, const SetRequest& set);

// The next event of the change, however long steps are. A refusal is an error, and so is a later
// set that takes its place. ErrorCode::cancelled: `stops` said so, and the change still comes.
Result<ChangeEvent> await_change(ControlClient& client, std::int64_t change, const Stops& stops);

// The snapshot that was asked for, or why there is none.
Result<SnapshotEvent> await_snapshot(ControlClient& client, std::int64_t snapshot,
                                     const Stops& stops);

}  // namespace sluice::control
