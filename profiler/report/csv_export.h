#pragma once
// Every table of a run as a CSV file (RFC 4180), for spreadsheets and scripts. For a part of a run,
// tables with a step or a time have the rows within it; the other tables describe the run and are
// whole, but for those that only help to find spans quickly, which are of all of it.
//
// Thread contract: free functions.

#include <string>

#include "base/status.h"
#include "profiler/report/output.h"
#include "profiler/report/run_part.h"
#include "storage/rundb/reader.h"

namespace sluice::report {

// A field with quotes around it, where it needs them. NULL is an empty field, and an empty text is
// a quoted one. A text that begins with one of ' = + - @, a tab or a carriage return, and is no
// number, has an apostrophe before it: names are text of others, and a spreadsheet computes what
// looks like a formula.
std::string csv_field(const rundb::Cell& cell);

// `folder` is made if it is not there. One that holds anything is refused, unless its files may be
// replaced; what is not ours stays.
Status export_csv(rundb::Reader& reader, const std::string& folder, IfExists if_exists,
                  const RunPart& part, const OnProgress& on_progress);

}  // namespace sluice::report
