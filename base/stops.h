#pragma once
// Whether work that may take minutes is to end early, asked by its loops between two pieces: a
// request that one loop hears and another does not is one that a user believes unheard.
//
// Thread contract: that of whoever asks; a free function.

#include <functional>
#include <string_view>

#include "base/status.h"

namespace sluice {

using Stops = std::function<bool()>;  // empty: nobody can ask

// `doing`: "writing the initial state".
inline Status unless_stopped(const Stops& stops, std::string_view doing) {
  if (!stops || !stops()) return ok_status();
  return make_error(ErrorCode::cancelled, "stopped by request while {}", doing);
}

}  // namespace sluice
