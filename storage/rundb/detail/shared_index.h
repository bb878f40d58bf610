#pragma once

// SQLite's index of the log, which the processes of one database share as a mapped file
// (run.db-shm). SQLite writes one byte a page of memory when it makes that file longer. Where a
// file system's blocks are smaller than a page (1 kB in an ext4 below 512 MB), the rest of the page
// has no space yet, and on a full drive the first access to it ends the process by SIGBUS: a
// training, or whoever looks at its record.

namespace sluice::rundb::detail {

// The name of a VFS for sqlite3_open_v2: the system's own, but for an index that has all of its
// space before anybody touches it, and SQLITE_FULL where a drive has none. Before Linux 5.14, whose
// MADV_POPULATE_WRITE it takes, it is the system's own in all. From any thread.
const char* whole_index_vfs();

}  // namespace sluice::rundb::detail
