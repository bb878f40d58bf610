#pragma once
// Asking a live run for something, and waiting for what becomes of it: what `sluice set`,
// `sluice snapshot` and `sluice tune --apply` have in common.
//
// Thread contract: one thread; Ctrl-C ends the waiting (interrupt.h).

#include <memory>
#include <string>

#include "base/status.h"
#include "core/control/control_client.h"

namespace sluice::cli {

inline constexpr std::chrono::milliseconds kLiveAnswer{5000};
inline constexpr std::chrono::milliseconds kLiveTurn{200};  // how often Ctrl-C is looked at

// By the run's database, or the socket beside it. ErrorCode::not_found where no run listens.
Result<std::unique_ptr<control::ControlClient>> connect_to_run(const std::string& database);

// Knobs to be changed together. The number of the change, for await_change(), or why the run
// refuses it.
Result<control::Message> ask_for_change(control::ControlClient& client,
                                        const control::SetRequest& set);

// The next event of the change, however long steps are. A refusal is an error, and so is a later
// set that takes its place.
Result<control::ChangeEvent> await_change(control::ControlClient& client, std::int64_t change);

// The snapshot that was asked for, or why there is none.
Result<control::SnapshotEvent> await_snapshot(control::ControlClient& client,
                                              std::int64_t snapshot);

}  // namespace sluice::cli
