#include "gui/data/known_runs.h"

#include <filesystem>

#include "gui/data/live_runs.h"
#include "gui/data/run_list.h"

namespace sluice::gui {

KnownRuns look_for_runs(const std::vector<std::string>& opened_before) {
  KnownRuns known;
  known.live = live_runs();
  for (const std::string& path : opened_before) {
    std::error_code error;
    if (!std::filesystem::exists(path, error)) known.gone.insert(path);
  }
  return known;
}

TypedPath look_at_path(const std::string& path) {
  std::error_code error;
  return {path, std::filesystem::is_regular_file(path, error), completions_of(path)};
}

}  // namespace sluice::gui
