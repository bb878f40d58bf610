#pragma once
// The state of a session, as its program reads and copies it.
//
// Thread contract: that of Session::commit(): between two steps, and behind a commit, so all calls
// are of the last step's state. An error of a call's own leaves the session as it was; those of
// commit() do not.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/session/session.h"

namespace sluice::session {

class SessionState {
 public:
  // The session outlives it.
  explicit SessionState(Session& session) : session_(session) {}

  // The names of its arrays: "master_weights", and what the optimizer has beside it. At any time.
  Result<std::vector<std::string>> arrays();
  // Updates that it has seen (Request::initial_updates, and the steps since).
  Result<std::int64_t> updates_done();
  // Elements [first, first + out.size()) of a tensor in an array, by its number in arrays().
  // ErrorCode::config: there is no such array or element, or the tensor is frozen.
  Status read(std::size_t tensor, std::size_t array, std::int64_t first, std::span<float> out);
  // The 32 hex digits that `sluice state --verify` prints, of all bits. ErrorCode::corrupt: a
  // checksum that is not the committed one.
  Result<std::string> digest();
  // A folder of its own that a session or a run goes on from (`state_dir`), whole or not at all.
  // The bytes of its arrays. Errors: a folder that is there already (ErrorCode::config); those of
  // its drive.
  Result<std::int64_t> save_snapshot(const std::string& folder);

 private:
  Session& session_;
};

}  // namespace sluice::session
