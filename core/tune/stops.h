#pragma once
// Whether somebody still waits for a search: asked before each simulated step.
//
// Thread contract: called by the thread that searches.

#include <functional>

#include "base/status.h"

namespace sluice::tune {

using Stops = std::function<bool()>;  // empty: it is never stopped

// ErrorCode::cancelled where it is.
inline Status check_stops(const Stops& stops) {
  if (!stops || !stops()) return ok_status();
  return make_error(ErrorCode::cancelled, "stopped before there was an answer");
}

}  // namespace sluice::tune
