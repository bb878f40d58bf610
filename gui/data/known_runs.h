#pragma once
// Which runs a person may want to open: those that are being recorded on this machine, and those
// opened before that are still there.
//
// Thread contract: free functions that read the disk and /proc; not the frame thread.

#include <set>
#include <string>
#include <vector>

namespace sluice::gui {

struct KnownRuns {
  // Absolute paths (gui/data/live_runs.h); the folder of several ranks, too, in front of them.
  std::vector<std::string> live;
  std::set<std::string> gone;  // of those opened before: no longer there
};
KnownRuns look_for_runs(const std::vector<std::string>& opened_before);

// The destination of a path that somebody types.
struct TypedPath {
  std::string path = {};
  bool is_far = false;  // ssh://..., which nobody looks for before it is opened
  bool is_file = false;
  std::size_t rank_count = 0;                 // whose records lie in that folder
  std::vector<std::string> completions = {};  // gui/data/run_list.h
};
TypedPath look_at_path(const std::string& path);

}  // namespace sluice::gui
