#pragma once
// Two runs as one HTML file that needs nothing beside it: whether they can be compared, which is
// faster and where, with the noise of both. What stands in it: docs/recording.md.
//
// Thread contract: free functions.

#include <string>

#include "base/status.h"

namespace sluice::report {

// The page. All text of the databases is data in it. Errors: those of opening; ErrorCode::config if
// a run has no steps.
Result<std::string> comparison_report(const std::string& database_a, const std::string& database_b);

}  // namespace sluice::report
