#pragma once
// A run as one HTML file that needs nothing beside it: no network, no other file. What stands in it
// and in which order: docs/recording.md.
//
// Thread contract: free functions.

#include <string>

#include "base/status.h"
#include "storage/rundb/reader.h"

namespace sluice::report {

// The page. All text of the database is data in it: none of it is read as HTML or as a script.
Result<std::string> html_report(rundb::Reader& reader);

}  // namespace sluice::report
