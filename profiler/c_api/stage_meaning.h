#pragma once
// A stage of sluice_record.h as a row of table `stage`.
//
// Thread contract: free functions, any thread.

#include <optional>

#include "profiler/c_api/sluice_record.h"
#include "storage/rundb/rows.h"

namespace sluice::c_api {

// None: one of the values means nothing. The id of the name is not in it.
std::optional<rundb::StageRow> stage_row(const sluice_stage& stage);

}  // namespace sluice::c_api
