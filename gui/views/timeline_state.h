#pragma once
// What somebody looks at on the timeline: a window of time, a chosen span, a measured stretch, a
// search. The timeline itself, other views and commands change it.
//
// Thread contract: the frame thread.

#include <optional>
#include <string>

#include "gui/views/run_pieces.h"

namespace sluice::gui {

struct TimeRange {
  TimeNs begin = 0;
  TimeNs end = 0;
  TimeNs width() const { return end - begin; }
  bool operator==(const TimeRange&) const = default;
};

class TimelineState {
 public:
  // `pieces` lives longer.
  explicit TimelineState(const RunPieces& pieces) : pieces_(&pieces) {}

  // Once a frame, after the pieces: a first view is chosen, and one that follows moves on.
  void pick_up();
  // Nothing of the run before stays.
  void close() { *this = TimelineState(*pieces_); }

  // The view is in the middle of the run, or at most half a run outside of it. All of these but
  // zoom() end following.
  const TimeRange& view() const { return view_; }  // empty: not yet chosen
  void set_view(TimeRange range);
  void show_all();
  void show_step(const rundb::StepRow& step);
  void show_middle_step();
  void show_chosen();
  void pan(TimeNs by);
  void zoom(double factor, TimeNs around);

  // The view keeps to the end of a live run.
  bool follows() const { return follows_; }
  void toggle_following() { follows_ = !follows_ && pieces_->run->is_live; }

  // Asks the feed for what `width` columns of the view can show, where that is something new.
  void ask_for_picture(float width);
  // The picture that is drawn shows this view, as finely as the view can be shown.
  bool has_picture() const;
  const TimelineRequest& asked() const { return asked_; }

  std::int64_t chosen_span() const { return chosen_span_; }  // 0: none
  void choose(std::int64_t span_id);

  // Chooses it and brings it into view, also on a row that is scrolled or folded away.
  void go_to(const rundb::SpanRow& span);
  // The track that a go_to() wants to be seen; once.
  std::optional<std::int64_t> take_track_to_show();

  // Of the critical path: its spans stand out, all others are dimmed.
  const std::optional<analyze::Cause>& marked_cause() const { return marked_cause_; }
  void mark_cause(std::optional<analyze::Cause> cause) { marked_cause_ = cause; }

  bool measures() const { return measures_; }  // dragging measures, also without Shift
  void toggle_measuring() { measures_ = !measures_; }
  const std::optional<TimeRange>& measured() const { return measured_; }
  void measure(TimeRange range) { measured_ = range; }
  void forget_measured() { measured_.reset(); }
  // Measured before, to be compared with what is measured next.
  const std::optional<TimeRange>& pinned() const { return pinned_; }
  void pin_measured() { pinned_ = measured_; }

  const std::string& search() const { return search_; }
  void look_for(const std::string& text);
  std::size_t found_index() const { return found_index_; }
  // The next or the previous found span comes into the middle of the view; 0: the same again.
  void show_found(int direction);
  void focus_search() { focuses_search_ = true; }
  // The field of the search shall get the keyboard; true once.
  bool take_search_focus();

 private:
  void set_view_within_run(TimeRange range);
  void show_last_steps();
  void show_all_of_run();

  const RunPieces* pieces_;
  TimeRange view_;
  bool follows_ = false;
  TimelineRequest asked_;
  const RunFeed* asked_of_ = nullptr;
  std::int64_t chosen_span_ = 0;
  std::optional<std::int64_t> track_to_show_;
  std::optional<analyze::Cause> marked_cause_;
  bool measures_ = false;
  std::optional<TimeRange> measured_;
  std::optional<TimeRange> pinned_;
  std::string search_;
  std::size_t found_index_ = 0;
  bool focuses_search_ = false;
};

}  // namespace sluice::gui
