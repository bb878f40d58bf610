#pragma once
// What views share: the newest pieces of the open run, and what the person at the window looks at.
//
// Thread contract: the frame thread.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gui/data/run_feed.h"
#include "gui/views/turning.h"

namespace sluice::gui {

struct TimeRange {
  TimeNs begin = 0;
  TimeNs end = 0;
  TimeNs width() const { return end - begin; }
  bool operator==(const TimeRange&) const = default;
};

struct Session {
  std::unique_ptr<RunFeed> feed;  // null: no run is open

  // Picked up from the feed once a frame.
  std::shared_ptr<const RunSnapshot> run;
  std::shared_ptr<const TimelineWindow> timeline;
  std::shared_ptr<const Minimap> minimap;
  std::shared_ptr<const ChosenSpan> chosen;
  std::shared_ptr<const Verdict> verdict;
  std::shared_ptr<const SpanStatistics> statistics;
  std::shared_ptr<const Findings> found;

  Turning turning;
  std::function<void()> wake = [] {};  // draw again; from any thread
  std::vector<std::string> recent;     // databases opened before, the last one first

  TimeRange view;         // of the timeline; empty: not yet chosen
  TimelineRequest asked;  // of the feed, for this view
  bool follows = false;   // the view keeps to the end of a live run
  bool measures = false;  // dragging measures
  std::optional<TimeRange> measured;
  std::optional<TimeRange> pinned;  // measured before, to be compared with what is measured now
  std::int64_t chosen_span = 0;
  std::string search;
  std::size_t found_index = 0;
  bool focuses_search = false;              // asked for by a command
  std::vector<std::string> brings_forward;  // titles of views to be shown, one a frame

  bool has_facts() const { return run != nullptr && run->facts != nullptr; }
  // What is drawn is of this view and as fine as it can show.
  bool has_timeline() const { return timeline != nullptr && timeline->request == asked; }
  const RunFacts& facts() const { return *run->facts; }
  const std::vector<rundb::StepRow>& steps() const { return *run->steps; }

  void pick_up();
  // Nothing of the run before stays.
  void close();

  void choose(std::int64_t span_id);
  void look_for(const std::string& text);
  void show_step(const rundb::StepRow& step);
  void show_all();
  // The next or the previous found span comes into the middle of the view.
  void show_found(int direction);
  void zoom(double factor, TimeNs around);
  void pan(TimeNs by);
  void set_view(TimeRange range);
};

}  // namespace sluice::gui
