#pragma once
// The file that rows are recorded or copied into, before the first of them and after the last.
//
// Thread contract: free functions, in the connection's thread.

#include <string>

#include "base/status.h"
#include "storage/rundb/detail/connection.h"

namespace sluice::rundb::detail {

// The write-ahead log on, and the settings of a connection that writes batches. Errors
// (unsupported): the file system cannot hold such a log.
Status prepare_for_recording(Connection& connection);

// Folds the log into the file, and drops it, so that a finished run is one file that opens from
// read-only media, too. A reader that is looking on keeps the log in use: then it stays, and is
// as good.
Status fold_log(Connection& connection);

// Refuses a path where something lies that is not a run database (ErrorCode::config).
Status check_is_ours(const std::string& path);

// A run database, with what SQLite has put beside it; nothing else is ever removed.
Status remove_database(const std::string& path);

}  // namespace sluice::rundb::detail
