#pragma once
// Keeps a run database to one writer: two connections that write or checkpoint at the same time can
// corrupt a write-ahead log in SQLite up to 3.51.2 (https://www.sqlite.org/wal.html, "the
// WAL-reset bug"), and two runs in one file make no sense anyway.
//
// The lock is a file beside the database, `RUN.db-writer`, and not the database itself: closing any
// descriptor of that would drop the locks that SQLite holds on it in this process. The kernel frees
// the lock with its process, so the file that a killed run leaves keeps nobody out.
//
// It also keeps some space of the drive, which is given back for the last rows of a recording that
// a full drive has stopped: what says so must fit. As it is written to and cut, it has to be a file
// of this user's own (base/safe_file.h).

#include <string>

#include "base/status.h"

namespace sluice::rundb::detail {

class WriterLock {
 public:
  static Result<WriterLock> acquire(const std::string& database_path);
  WriterLock(WriterLock&& other) noexcept;
  WriterLock& operator=(WriterLock&&) = delete;
  ~WriterLock();

  void release_space();

 private:
  WriterLock(std::string path, int descriptor);

  std::string path_;
  int descriptor_;
};

}  // namespace sluice::rundb::detail
