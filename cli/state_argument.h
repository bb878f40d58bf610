#pragma once
// The argument that names a state: its directory, or the folder of the run (OUTPUT) for the state
// in it.
//
// Thread contract: free functions.

#include <string>

#include "base/status.h"

namespace sluice::cli {

// The directory of the state. ErrorCode::config where several ranks have theirs in the folder.
Result<std::string> state_in(const std::string& given);

}  // namespace sluice::cli
