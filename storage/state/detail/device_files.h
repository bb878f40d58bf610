#pragma once
// Opening the device files that belong to a commit log, and what a commit says about them.
// Thread contract: free functions without state.

#include <vector>

#include "base/status.h"
#include "storage/io/file.h"
#include "storage/state/commit_record.h"
#include "storage/state/detail/file_header.h"
#include "storage/state/state_store.h"

namespace sluice::state::detail {

// Every device file, in device order; each has to be of the state of `log_header`.
Result<std::vector<io::File>> open_device_files(const StateStore::Options& options,
                                                io::FileAccess access,
                                                const FileHeader& log_header);

// Whether the slots of a record exist, lie inside their files and are of one subgroup each.
Status check_slots(const CommitRecord& record, const Geometry& geometry,
                   const std::vector<io::File>& files, const std::string& log_path);

}  // namespace sluice::state::detail
