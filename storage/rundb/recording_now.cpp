#include "storage/rundb/recording_now.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <fstream>
#include <sstream>

namespace sluice::rundb {

// A line: `1: FLOCK ADVISORY WRITE 19456 fe:00:2171474 0 EOF`, numbers of the file system in
// hexadecimal.
std::vector<HeldLock> held_locks() {
  std::vector<HeldLock> held;
  std::ifstream file("/proc/locks");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string number, kind, advisory, mode, place;
    HeldLock lock;
    if (!(words >> number >> kind >> advisory >> mode >> lock.process >> place)) continue;
    if (kind != "FLOCK" || mode != "WRITE") continue;
    char colon = 0;
    std::istringstream parts(place);
    parts >> std::hex >> lock.major >> colon >> lock.minor >> colon >> std::dec >> lock.inode;
    if (parts) held.push_back(lock);
  }
  return held;
}

bool is_being_recorded(const std::string& database_path) {
  struct stat file;
  if (::stat((database_path + std::string(kWriterLockSuffix)).c_str(), &file) != 0) return false;
  return std::ranges::any_of(held_locks(), [&file](const HeldLock& lock) {
    return lock.inode == file.st_ino && lock.major == major(file.st_dev) &&
           lock.minor == minor(file.st_dev);
  });
}

}  // namespace sluice::rundb
