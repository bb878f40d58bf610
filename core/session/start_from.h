#pragma once
// The state that a run begins from.
//
// Thread contract: plain data.

#include <cstdint>

namespace sluice::session {

enum class StartFrom : std::uint8_t { new_state, last_commit };

}  // namespace sluice::session
