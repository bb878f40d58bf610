#pragma once
// A run as a SQLite database with the table and column names of Nsight Systems' export, so that
// queries and scripts written for that work on it. docs/recording.md says what becomes what.
//
// Thread contract: free functions.

#include <string>

#include "base/status.h"
#include "profiler/report/output.h"
#include "profiler/report/run_part.h"
#include "storage/rundb/reader.h"

namespace sluice::report {

Status export_nsys(rundb::Reader& reader, const std::string& path, IfExists if_exists,
                   const RunPart& part, const OnProgress& on_progress);

}  // namespace sluice::report
