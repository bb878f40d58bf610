#pragma once
// The made records of three ranks where a run of several leaves them: OUTPUT/rank-0/run.db and so
// on.

#include <filesystem>
#include <string>
#include <vector>

#include "tests/profiler/made_ranks.h"

namespace sluice::gui {

// The databases, by rank.
inline std::vector<std::string> write_run_of_ranks(const std::string& output,
                                                   const MadeRanks& made = {}) {
  const rundb::TempFolder folder;
  std::vector<std::string> databases;
  int rank = 0;
  for (const std::string& path : write_made_ranks(folder, made)) {
    const std::filesystem::path own =
        std::filesystem::path(output) / ("rank-" + std::to_string(rank++));
    std::filesystem::create_directories(own);
    databases.push_back((own / "run.db").string());
    std::filesystem::copy_file(path, databases.back(),
                               std::filesystem::copy_options::overwrite_existing);
  }
  return databases;
}

}  // namespace sluice::gui
