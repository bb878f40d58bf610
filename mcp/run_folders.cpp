#include "mcp/run_folders.h"

#include <algorithm>

#include "profiler/analyze/rank_records.h"
#include "profiler/runs/run_search.h"

namespace sluice::mcp {
namespace {

namespace fs = std::filesystem;

bool has_prefix(const fs::path& path, const fs::path& folder) {
  const auto [in_folder, in_path] =
      std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  static_cast<void>(in_path);
  return in_folder == folder.end();
}

// A database, or the folder of one; symbolic links are followed first.
std::optional<fs::path> canonical_of(const fs::path& path) {
  std::error_code error;
  fs::path canonical = fs::canonical(path, error);
  if (error) return std::nullopt;
  return canonical;
}

}  // namespace

Result<RunFolders> RunFolders::open(const std::vector<std::string>& databases,
                                    const std::string& folder) {
  RunFolders folders;
  for (const std::string& database : analyze::databases_of(databases)) {
    // One that comes later is a live run's that has not begun.
    const auto canonical = canonical_of(database);
    folders.databases_.push_back(canonical ? *canonical : fs::absolute(database));
  }
  if (folder.empty()) return folders;
  const auto canonical = canonical_of(folder);
  if (!canonical || !fs::is_directory(*canonical))
    return make_error(ErrorCode::not_found, "--runs {}: there is no such folder", folder);
  folders.folder_ = *canonical;
  return folders;
}

bool RunFolders::is_inside(const fs::path& canonical) const {
  if (!folder_.empty() && has_prefix(canonical, folder_)) return true;
  return std::ranges::any_of(databases_, [&](const fs::path& database) {
    return canonical == database || canonical == canonical_of(database);
  });
}

Result<std::string> RunFolders::resolve(const std::optional<std::string>& given) const {
  if (!given) {
    if (databases_.size() == 1 && folder_.empty()) return databases_.front().string();
    return make_error(ErrorCode::config,
                      "'run' is missing, and this server has more than one; list_runs names them");
  }
  if (given->find('\0') != std::string::npos)
    return make_error(ErrorCode::config, "a path has no zero byte");
  std::vector<fs::path> candidates = {fs::path(*given)};
  if (!folder_.empty()) candidates.push_back(folder_ / *given);
  for (const fs::path& database : databases_) {
    if (database.filename() == *given) candidates.push_back(database);
  }
  bool is_there = false;
  for (const fs::path& candidate : candidates) {
    const auto canonical = canonical_of(candidate);
    if (!canonical) continue;
    is_there = true;
    if (!is_inside(*canonical)) continue;
    const std::string database = analyze::database_of(canonical->string());
    // The run.db of a folder may be a link that leads out of it.
    const auto read = canonical_of(database);
    if (read && is_inside(*read)) return read->string();
  }
  return make_error(ErrorCode::config, "{}: {}; list_runs names the runs there are", *given,
                    is_there ? "lies outside of the runs and folders that this server was given"
                             : "there is no such run");
}

RunFolders::Listed RunFolders::list(const Stops& stops) const {
  Listed listed;
  for (const fs::path& database : databases_) listed.databases.push_back(database.string());
  if (folder_.empty()) return listed;
  const runs::FoundRuns found =
      runs::runs_below(folder_.string(), {.folders_below = kDepthMax,
                                          .found_max = kListedMax,
                                          .ranks = runs::RanksAs::each,
                                          .links = runs::FolderLinks::pass_by,
                                          .stops = stops});
  listed.is_whole = found.is_whole;
  for (const std::string& path : found.paths) {
    const auto canonical = canonical_of(path);
    if (canonical && is_inside(*canonical)) listed.databases.push_back(canonical->string());
  }
  std::ranges::sort(listed.databases);
  const auto same = std::ranges::unique(listed.databases);
  listed.databases.erase(same.begin(), same.end());
  return listed;
}

}  // namespace sluice::mcp
