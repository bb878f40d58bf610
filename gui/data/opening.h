#pragma once
// The run that somebody wants to open, found by a thread: a database, the folder of a run, a run on
// a server (gui/data/followed_run.h), or the databases of several ranks. The latter are merged into
// a file of the window's own (profiler/report/merged_file.h), by rank 0's clock.
//
// Thread contract: one thread, the one that draws. Only the destructor waits, for the read under
// way, which it stops.

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "gui/data/followed_run.h"
#include "gui/data/published.h"
#include "profiler/report/merged_file.h"

namespace sluice::gui {

// The databases that an open merged record was made of. It is of the instant at which it was read.
struct MergedRanks {
  std::vector<std::string> databases;  // rank 0's first
  std::string folder;                  // OUTPUT, whose ranks they all are; empty: no one folder's
  bool was_live = false;               // one of them was being recorded
  std::string read_at;                 // "14:20:31", UTC
  std::shared_ptr<const report::MergedFile> file;

  // The name that people use for it, as files beside it are named: OUTPUT, or rank 0's database.
  const std::string& place() const { return folder.empty() ? databases.front() : folder; }
};

struct Opened {
  std::string database = {};                      // what a RunFeed reads
  std::shared_ptr<const MergedRanks> ranks = {};  // null: `database` is the run's own
  std::shared_ptr<const FollowedRun> far = {};    // null: it is recorded here, or was
  std::string problem = {};                       // not empty: why there is nothing to open
};

class Opening {
 public:
  // `into`: the file that is to be replaced, where the ranks are read again; null: a new one.
  // `wake` is called by the thread whenever there is more to show; a run on a server keeps it.
  Opening(std::vector<std::string> paths, std::shared_ptr<const report::MergedFile> into,
          FarChoice far, std::function<void()> wake);
  ~Opening();
  Opening(const Opening&) = delete;
  Opening& operator=(const Opening&) = delete;

  const std::vector<std::string>& paths() const { return paths_; }
  // The share of the ranks' operations that was read, 0 to 1.
  double share() const { return share_; }
  // It is a run on a server.
  bool is_far() const;
  // Null: not yet.
  std::shared_ptr<const Opened> result() const { return result_.latest(); }

 private:
  Opened open();
  Opened open_far();

  const std::vector<std::string> paths_;
  const std::shared_ptr<const report::MergedFile> into_;
  const FarChoice far_;
  const std::function<void()> wake_;
  std::atomic<double> share_ = 0;
  Published<Opened> result_;
  std::stop_source stop_;
  std::future<void> work_;
};

}  // namespace sluice::gui
