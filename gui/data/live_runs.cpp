#include "gui/data/live_runs.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace sluice::gui {
namespace {

constexpr std::string_view kLockSuffix = "-writer";  // docs/rundb_schema.md, "One writer"

// A line of /proc/locks: `1: FLOCK ADVISORY WRITE 19456 fe:00:2171474 0 EOF`, numbers of the file
// system in hexadecimal.
struct HeldLock {
  long process = 0;
  unsigned major = 0;
  unsigned minor = 0;
  unsigned long inode = 0;
};

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

}  // namespace

bool is_being_recorded(const std::string& database_path) {
  struct stat file;
  if (::stat((database_path + std::string(kLockSuffix)).c_str(), &file) != 0) return false;
  return std::ranges::any_of(held_locks(), [&file](const HeldLock& lock) {
    return lock.inode == file.st_ino && lock.major == major(file.st_dev) &&
           lock.minor == minor(file.st_dev);
  });
}

std::vector<std::string> live_runs() {
  std::vector<std::string> runs;
  for (const HeldLock& lock : held_locks()) {
    const std::string folder = "/proc/" + std::to_string(lock.process) + "/fd";
    std::error_code error;
    for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
         entry.increment(error)) {
      std::error_code unreadable;
      std::string path = std::filesystem::read_symlink(entry->path(), unreadable).string();
      if (unreadable || !path.ends_with(kLockSuffix)) continue;
      path.resize(path.size() - kLockSuffix.size());
      if (std::filesystem::is_regular_file(path, unreadable)) runs.push_back(std::move(path));
    }
  }
  std::ranges::sort(runs);
  const auto [first, last] = std::ranges::unique(runs);
  runs.erase(first, last);
  return runs;
}

}  // namespace sluice::gui
