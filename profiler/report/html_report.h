#pragma once
// A run as one HTML file that needs nothing beside it: no network, no other file. What stands in it
// and in which order: docs/recording.md.
//
// Thread contract: free functions.

#include <functional>
#include <string>

#include "base/status.h"
#include "profiler/analyze/turn_next.h"
#include "storage/rundb/reader.h"

namespace sluice::report {

// Predicts what to turn next, by simulation. Empty: the page says nothing about it.
using Predict = std::function<analyze::PredictedChanges()>;

// The page. All text of the database is data in it: none of it is read as HTML or as a script.
Result<std::string> html_report(rundb::Reader& reader, const Predict& predict = {});

}  // namespace sluice::report
