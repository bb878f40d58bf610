#pragma once
// Whether a run is being recorded into a database now. The kernel says who holds a lock
// (/proc/locks), so nothing is locked to find out, and no run is disturbed.
//
// Thread contract: free functions that read /proc.

#include <string>
#include <string_view>
#include <vector>

namespace sluice::rundb {

// Its writer locks a file beside a database that ends so (docs/rundb_schema.md, "One writer").
inline constexpr std::string_view kWriterLockSuffix = "-writer";

// A lock on a whole file that keeps other writers out (flock).
struct HeldLock {
  long process = 0;
  unsigned major = 0;  // of the file system
  unsigned minor = 0;
  unsigned long inode = 0;
};
std::vector<HeldLock> held_locks();

bool is_being_recorded(const std::string& database_path);

}  // namespace sluice::rundb
