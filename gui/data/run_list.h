#pragma once
// Runs that somebody may want to open, each with what tells it from the others.
//
// Thread contract: free functions that read the disk and open databases; not the frame thread.

#include <cstdint>
#include <string>
#include <vector>

namespace sluice::gui {

struct RunSummary {
  std::string path;            // absolute; of a run of several ranks its folder; ssh://...
  bool is_far = false;         // on a server: nothing more is known of it
  std::string name;            // of the model; empty: no run database, or one that cannot be read
  std::string started;         // "2026-11-25 12:39", UTC; empty: the record does not say
  std::size_t rank_count = 0;  // whose records lie in the folder; 0: `path` is a database
  std::int64_t step_count = 0;
  double loss = 0;  // of the last step; not a number: it has none
  bool is_simulated = false;
};
RunSummary summary_of(const std::string& path);

// Databases in `folder` and up to two folders below it, folders of runs of several ranks in place
// of their ranks', and `opened_before` that are still there; the newest first, at most kListedMax,
// and then those on servers.
std::vector<RunSummary> list_runs(const std::string& folder,
                                  const std::vector<std::string>& opened_before);
inline constexpr std::size_t kListedMax = 100;

// The continuations of the beginning of a path: folders (ending in "/") and databases, by name.
std::vector<std::string> completions_of(const std::string& typed);
}  // namespace sluice::gui
