#include "gui/data/live_runs.h"

#include <algorithm>
#include <filesystem>

namespace sluice::gui {

std::vector<std::string> live_runs() {
  std::vector<std::string> runs;
  for (const rundb::HeldLock& lock : rundb::held_locks()) {
    const std::string folder = "/proc/" + std::to_string(lock.process) + "/fd";
    std::error_code error;
    for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
         entry.increment(error)) {
      std::error_code unreadable;
      std::string path = std::filesystem::read_symlink(entry->path(), unreadable).string();
      if (unreadable || !path.ends_with(rundb::kWriterLockSuffix)) continue;
      path.resize(path.size() - rundb::kWriterLockSuffix.size());
      if (std::filesystem::is_regular_file(path, unreadable)) runs.push_back(std::move(path));
    }
  }
  std::ranges::sort(runs);
  const auto [first, last] = std::ranges::unique(runs);
  runs.erase(first, last);
  return runs;
}

}  // namespace sluice::gui
