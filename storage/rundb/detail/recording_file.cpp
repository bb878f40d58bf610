#include "storage/rundb/detail/recording_file.h"

#include <filesystem>

#include "storage/rundb/detail/schema.h"

namespace sluice::rundb::detail {
namespace {

// synchronous=NORMAL: the death of the process loses nothing that was committed; a power cut may
// lose the last batches and damages nothing.
// 4000 pages of 4 KiB: the log is folded in each 16 MB, by this connection, inside a commit.
// secure_delete: Debian's SQLite has it on, which costs writes and hides nothing here.
constexpr const char* kRecordingSettings =
    "PRAGMA synchronous = NORMAL;"
    "PRAGMA wal_autocheckpoint = 4000;"
    "PRAGMA journal_size_limit = 67108864;"
    "PRAGMA temp_store = MEMORY;"
    "PRAGMA cache_size = -16384;"
    "PRAGMA secure_delete = OFF";

}  // namespace

Status prepare_for_recording(Connection& connection) {
  ASSIGN_OR_RETURN(const std::string mode, connection.query_text("PRAGMA journal_mode = WAL"));
  if (mode != "wal") {
    return make_error(ErrorCode::unsupported,
                      "{}: its file system cannot hold a write-ahead log (SQLite stayed in mode "
                      "'{}'); record on a local drive",
                      connection.path(), mode);
  }
  return connection.execute(kRecordingSettings);
}

Status fold_log(Connection& connection) {
  connection.set_busy_timeout_ms(0);
  for (const char* sql : {"PRAGMA wal_checkpoint(TRUNCATE)", "PRAGMA journal_mode = DELETE"}) {
    const Status folded = connection.execute(sql);
    if (!folded.ok() && folded.error().code() != ErrorCode::busy) return folded;
  }
  return ok_status();
}

Status check_is_ours(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return ok_status();
  if (std::filesystem::is_regular_file(path, error)) {
    ASSIGN_OR_RETURN(const bool ours, is_run_database_file(path));
    if (ours) return ok_status();
  }
  return make_error(ErrorCode::config,
                    "{}: exists and is not a run database of Sluice, so it is not replaced; name "
                    "another file with --db",
                    path);
}

Status remove_database(const std::string& path) {
  RETURN_IF_ERROR(check_is_ours(path));
  for (const char* suffix : {"-wal", "-shm", "-journal", ""}) {
    std::error_code error;
    std::filesystem::remove(path + suffix, error);
    if (error)
      return make_error(ErrorCode::io, "{}{}: cannot remove: {}", path, suffix, error.message());
  }
  return ok_status();
}

}  // namespace sluice::rundb::detail
