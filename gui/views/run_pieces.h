#pragma once
// What was read of the open run: its newest pieces, the same for a whole frame. Views read them and
// change nothing.
//
// Thread contract: the frame thread.

#include <memory>
#include <string>
#include <vector>

#include "gui/data/run_feed.h"
#include "gui/data/run_snapshot.h"

namespace sluice::analyze {
struct Answer;
}

namespace sluice::gui {

struct LikeRun;
struct MergedRanks;

struct RunPieces {
  std::shared_ptr<const MergedRanks> ranks;  // that were merged for this window; null: none were
  std::unique_ptr<RunFeed> feed;             // null: no run is open; its file goes after it

  // Each null until there is something.
  std::shared_ptr<const RunSnapshot> run;
  std::shared_ptr<const TimelineWindow> timeline;
  std::shared_ptr<const Minimap> minimap;
  std::shared_ptr<const ChosenSpan> chosen;
  std::shared_ptr<const SpanRank> rank;  // of the chosen span, or of the one chosen before
  std::shared_ptr<const StepPaths> paths;
  std::shared_ptr<const Verdict> verdict;
  std::shared_ptr<const SpanStatistics> statistics;  // of the whole run
  std::shared_ptr<const SpanStatistics> range_statistics;
  std::shared_ptr<const Findings> found;

  // Once a frame, before anything is drawn.
  void pick_up();

  // What other programs are asked about: the run's own database, or that of its rank 0.
  const std::string& own_database() const;
  // What people call it, and where files that are made of it lie: a database, or the run's folder.
  const std::string& place() const;
  // One like it with these settings.
  LikeRun like_run(const std::vector<std::string>& settings) const;
  // The run was being recorded as it was read last.
  bool was_live() const;
  bool has_facts() const { return run != nullptr && run->facts != nullptr; }
  const RunFacts& facts() const { return *run->facts; }
  const std::vector<rundb::StepRow>& steps() const { return *run->steps; }
  const std::vector<rundb::ValidationRow>& validations() const { return *run->validations; }
  // What was lost, as far as has been looked: the counts at once, rows with the verdict.
  analyze::Answer losses() const;
};

}  // namespace sluice::gui
