#pragma once
// An open run database as the window sees it: immutable pieces that threads of its own keep up with
// the file, live or finished. Requests go in, results are there when they are there; nothing here
// waits for the disk or for SQLite.
//
//   follower   facts, steps, timeline, minimap, counters, the chosen span: what must come quickly
//   student    verdict, critical paths, rank of the chosen span, explanation of the chosen steps,
//              statistics, search: what may take seconds of a long run
//   console    SQL (gui/data/sql_console.h)
//
// A file that disappears, is replaced, cut or foreign becomes a problem in RunSnapshot, with what
// was read before still there; a replaced file is opened anew, at once where it can be.
//
// Thread contract: one thread, the one that draws. Destroying it waits for the reads under way.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/units.h"

namespace sluice::analyze {
struct SampledTime;
struct StepExplanation;
struct StepRange;
}  // namespace sluice::analyze

namespace sluice::gui {

// The data that it reads, each in a header of its own.
struct ChosenSpan;
struct Findings;
struct Minimap;
struct RunSnapshot;
struct ScanRange;
struct SpanRank;
struct SpanStatistics;
struct StepPaths;
struct TimelineRequest;
struct TimelineWindow;
struct Verdict;
class SqlConsole;

struct FeedOptions {
  std::function<void()> wake = [] {};  // a result is there; called by the feed's threads
  TimeNs poll_live_ns = 20'000'000;    // at most, from the file to the picture
  TimeNs poll_finished_ns = 1'000'000'000;
};

class RunFeed {
 public:
  explicit RunFeed(const std::string& path, FeedOptions options = {});
  ~RunFeed();
  RunFeed(const RunFeed&) = delete;
  RunFeed& operator=(const RunFeed&) = delete;

  const std::string& path() const;

  // Each null until there is something.
  std::shared_ptr<const RunSnapshot> run() const;
  std::shared_ptr<const TimelineWindow> timeline() const;
  std::shared_ptr<const Minimap> minimap() const;
  std::shared_ptr<const ChosenSpan> chosen() const;
  std::shared_ptr<const SpanRank> rank() const;
  std::shared_ptr<const StepPaths> paths() const;
  std::shared_ptr<const Verdict> verdict() const;
  std::shared_ptr<const SpanStatistics> statistics() const;  // of the whole run
  // The range is the one that was asked for last; null until it has been read.
  std::shared_ptr<const SpanStatistics> range_statistics() const;
  std::shared_ptr<const Findings> found() const;
  // Why the steps that were asked for last took as long as they did.
  std::shared_ptr<const analyze::StepExplanation> explanation() const;
  // What processors did in these steps; null: it was not recorded.
  std::shared_ptr<const analyze::SampledTime> samples() const;

  void want_timeline(const TimelineRequest& request);
  void choose_span(std::int64_t span_id);  // 0: none
  void search(const std::string& text);
  void want_statistics(ScanRange range);
  void explain(const analyze::StepRange& steps);
  SqlConsole& console();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice::gui
