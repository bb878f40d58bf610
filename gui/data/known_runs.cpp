#include "gui/data/known_runs.h"

#include <algorithm>
#include <filesystem>

#include "gui/data/live_runs.h"
#include "gui/data/run_list.h"
#include "profiler/analyze/rank_records.h"
#include "profiler/relay/far_run.h"

namespace sluice::gui {
namespace {

// OUTPUT, where a run's OUTPUT/rank-0/run.db and others are live.
std::vector<std::string> with_folders_of_ranks(const std::vector<std::string>& databases) {
  std::vector<std::string> runs;
  for (const std::string& database : databases) {
    const std::string folder = std::filesystem::path(database).parent_path().parent_path().string();
    const std::vector<std::string> ranks = analyze::rank_databases_in(folder);
    const bool is_of_rank = std::ranges::find(ranks, database) != ranks.end();
    if (is_of_rank && std::ranges::find(runs, folder) == runs.end()) runs.push_back(folder);
    runs.push_back(database);
  }
  return runs;
}

}  // namespace

KnownRuns look_for_runs(const std::vector<std::string>& opened_before) {
  KnownRuns known;
  known.live = with_folders_of_ranks(live_runs());
  for (const std::string& path : opened_before) {
    std::error_code error;
    if (!relay::is_far_run(path) && !std::filesystem::exists(path, error)) known.gone.insert(path);
  }
  return known;
}

TypedPath look_at_path(const std::string& path) {
  if (relay::is_far_run(path)) return {.path = path, .is_far = true};
  std::error_code error;
  return {.path = path,
          .is_file = std::filesystem::is_regular_file(path, error),
          .rank_count = analyze::rank_databases_in(path).size(),
          .completions = completions_of(path)};
}

}  // namespace sluice::gui
