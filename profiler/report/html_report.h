#pragma once
// A run as one HTML file that needs nothing beside it: no network, no other file. What stands in it
// and in which order: docs/recording.md.
//
// Thread contract: free functions.

#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "profiler/analyze/advice.h"
#include "storage/rundb/reader.h"

namespace sluice::report {

// A setting with which a step should be shorter.
struct PredictedChange {
  std::string setting;  // "buffers"
  std::string from;
  std::string to;
  std::string why;
  double ns = 0;      // of a step with it, as the recording has it
  double change = 0;  // of a step's time; below 0: shorter
};
struct PredictedChanges {
  std::vector<PredictedChange> better;  // the best first
  double fit_error = 0;     // of the prediction without any change, beside what was recorded
  std::string unavailable;  // why nothing was predicted; empty: it was
};
// For whoever can simulate. Empty: the page says nothing of it.
using Predict = std::function<PredictedChanges(const std::vector<analyze::Suggestion>&)>;

// The page. All text of the database is data in it: none of it is read as HTML or as a script.
Result<std::string> html_report(rundb::Reader& reader, const Predict& predict = {});

}  // namespace sluice::report
