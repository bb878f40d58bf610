#pragma once
// All that stands on the page of a comparison, as the one JSON object that it draws.
//
// Thread contract: free functions.

#include <string>

#include "base/status.h"
#include "profiler/report/detail/page_data.h"

namespace sluice::report::detail {

Result<PageData> comparison_data(const std::string& database_a, const std::string& database_b);

}  // namespace sluice::report::detail
