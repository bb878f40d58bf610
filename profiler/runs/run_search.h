#pragma once
// The runs that lie in a folder: whoever lists runs looks for them with this walk.
//
// Thread contract: free functions that read the disk.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/stops.h"

namespace sluice::runs {

// The run databases of a run of several ranks: its folder in their place, or each by itself.
enum class RanksAs : std::uint8_t { one_run, each };
// Symbolic links to folders. Links to files are taken either way.
enum class FolderLinks : std::uint8_t { follow, pass_by };

struct SearchOptions {
  int folders_below = 4;  // how deep it looks
  std::size_t found_max = 1000;
  std::size_t entries_max = 100'000;  // looked at
  RanksAs ranks = RanksAs::one_run;
  FolderLinks links = FolderLinks::follow;
  Stops stops = {};
};

struct FoundRuns {
  std::vector<std::string> paths;  // by name; each begins as the folder was named
  bool is_whole = true;            // false: there are more, or deeper folders
};

// Files ending in ".db", whatever is in them. A folder that cannot be read has none.
FoundRuns runs_below(const std::string& folder, const SearchOptions& options = {});

// The databases that are named, and those below folders that are; one that is named twice is there
// once. ErrorCode::not_found: a path is neither.
Result<FoundRuns> runs_of(const std::vector<std::string>& paths, const SearchOptions& options = {});

}  // namespace sluice::runs
