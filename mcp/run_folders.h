#pragma once
// The runs that a server may read: databases that were named to it, and those in its folder.
// Whatever a client names is looked for among these; no path leads out of them.
//
// Thread contract: one thread.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/stops.h"

namespace sluice::mcp {

class RunFolders {
 public:
  // Databases or folders of runs, and a folder that is searched for databases ("": none). Errors:
  // ErrorCode::not_found: there is no such folder.
  static Result<RunFolders> open(const std::vector<std::string>& databases,
                                 const std::string& folder);

  // A path to read, of a database or of a run's folder, by its path or, in the folder, by what is
  // left of it there. None given: the one run there is. ErrorCode::config: it lies outside, it is
  // not there, or several are meant.
  Result<std::string> resolve(const std::optional<std::string>& given) const;

  struct Listed {
    std::vector<std::string> databases;
    bool is_whole = true;  // false: there are more, or deeper ones
  };
  // The databases named, and those found in the folder at most kDepthMax below it, by name.
  Listed list(const Stops& stops) const;

  static constexpr int kDepthMax = 4;
  static constexpr std::size_t kListedMax = 1000;

 private:
  bool is_inside(const std::filesystem::path& canonical) const;

  std::vector<std::filesystem::path> databases_;  // canonical where they are there
  std::filesystem::path folder_;                  // canonical; empty: none
};

}  // namespace sluice::mcp
