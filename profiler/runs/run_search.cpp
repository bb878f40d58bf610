#include "profiler/runs/run_search.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "profiler/analyze/rank_records.h"

namespace sluice::runs {
namespace {

namespace fs = std::filesystem;

class Walk {
 public:
  explicit Walk(const SearchOptions& options) : options_(options) {}

  void enter(const fs::path& folder, int levels) {
    const bool is_of_ranks =
        options_.ranks == RanksAs::one_run && !analyze::rank_databases_in(folder.string()).empty();
    if (is_of_ranks) add(folder.string());
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
         entry.increment(error)) {
      if (!may_go_on()) return;
      look_at(*entry, levels, is_of_ranks);
    }
  }

  FoundRuns found() && { return {.paths = {paths_.begin(), paths_.end()}, .is_whole = is_whole_}; }

 private:
  void look_at(const fs::directory_entry& entry, int levels, bool is_of_ranks) {
    std::error_code error;
    if (entry.is_directory(error)) {
      if (options_.links == FolderLinks::pass_by && entry.is_symlink(error)) return;
      if (is_of_ranks && entry.path().filename().string().starts_with("rank-")) return;
      if (levels > 0) {
        enter(entry.path(), levels - 1);
      } else {
        is_whole_ = false;
      }
    } else if (entry.path().extension() == ".db" && entry.is_regular_file(error)) {
      add(entry.path().string());
    }
  }

  void add(std::string path) {
    if (paths_.size() < options_.found_max) {
      paths_.insert(std::move(path));
    } else {
      is_whole_ = false;
    }
  }

  bool may_go_on() {
    if (is_within_limits()) return true;
    is_whole_ = false;
    return false;
  }
  bool is_within_limits() {
    return ++looked_at_ <= options_.entries_max && !(options_.stops && options_.stops());
  }

  const SearchOptions& options_;
  std::set<std::string> paths_;
  std::size_t looked_at_ = 0;
  bool is_whole_ = true;
};

std::string canonical_of(const std::string& path) {
  std::error_code error;
  const fs::path canonical = fs::canonical(path, error);
  return error ? path : canonical.string();
}

}  // namespace

FoundRuns runs_below(const std::string& folder, const SearchOptions& options) {
  Walk walk(options);
  walk.enter(folder, options.folders_below);
  return std::move(walk).found();
}

Result<FoundRuns> runs_of(const std::vector<std::string>& paths, const SearchOptions& options) {
  FoundRuns all;
  std::set<std::string> seen;
  for (const std::string& path : paths) {
    std::error_code error;
    FoundRuns found = {.paths = {path}};
    if (fs::is_directory(path, error)) {
      found = runs_below(path, options);
    } else if (!fs::exists(path, error)) {
      return make_error(ErrorCode::not_found, "{}: there is no such folder or run database", path);
    }
    all.is_whole = all.is_whole && found.is_whole;
    for (std::string& run : found.paths) {
      if (!seen.insert(canonical_of(run)).second) continue;
      if (all.paths.size() < options.found_max) {
        all.paths.push_back(std::move(run));
      } else {
        all.is_whole = false;
      }
    }
  }
  return all;
}

}  // namespace sluice::runs
