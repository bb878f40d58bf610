#pragma once
// The newest pieces of the open run, the same for a whole frame. Views read them and change
// nothing.
//
// Thread contract: the frame thread.

#include <memory>
#include <string>
#include <vector>

#include "gui/data/run_feed.h"
#include "gui/data/run_snapshot.h"

namespace sluice::analyze {
struct Answer;
struct SampledTime;
struct StepExplanation;
}  // namespace sluice::analyze

namespace sluice::gui {

class FollowedRun;
struct LikeRun;
struct MergedRanks;

struct RunPieces {
  std::shared_ptr<const MergedRanks> ranks;  // that were merged for this window; null: none were
  std::shared_ptr<const FollowedRun> far;    // whose copy is read; null: none is
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
  std::shared_ptr<const analyze::StepExplanation> explanation;
  std::shared_ptr<const analyze::SampledTime> samples;  // of the explained steps

  // Once a frame, before anything is drawn.
  void pick_up();

  // The database that other programs are asked about: the run's own, or that of its rank 0.
  const std::string& own_database() const;
  // The name that people use for it, and the place of files that are made of it: a database, or the
  // run's folder.
  const std::string& place() const;
  // One like it with these settings.
  LikeRun like_run(const std::vector<std::string>& settings) const;
  // The run was being recorded as it was read last.
  bool was_live() const;
  bool has_facts() const { return run != nullptr && run->facts != nullptr; }
  const RunFacts& facts() const { return *run->facts; }
  const std::vector<rundb::StepRow>& steps() const { return *run->steps; }
  const std::vector<rundb::ValidationRow>& validations() const { return *run->validations; }
  // The losses, as far as has been looked: the counts at once, rows with the verdict.
  analyze::Answer losses() const;
};

}  // namespace sluice::gui
