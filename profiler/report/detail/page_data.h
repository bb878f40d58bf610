#pragma once
// All that stands in a report, as the one JSON object that its page draws.
//
// Thread contract: free functions.

#include <nlohmann/json.hpp>
#include <string>

#include "base/status.h"
#include "profiler/report/html_report.h"
#include "storage/rundb/reader.h"

namespace sluice::report::detail {

struct PageData {
  std::string title;  // plain text
  nlohmann::ordered_json json;
};

// Read in one snapshot, of a finished or a live run.
Result<PageData> page_data(rundb::Reader& reader, const Predict& predict);

}  // namespace sluice::report::detail
