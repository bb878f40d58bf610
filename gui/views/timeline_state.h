#pragma once
// What somebody looks at on the timeline: a window of time, a chosen span, a measured stretch, a
// search. The timeline itself, other views and commands change it.
//
// Thread contract: the frame thread.

#include <optional>
#include <string>

#include "gui/views/run_pieces.h"
#include "gui/views/timeline_folding.h"

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

  // The view lies within the run and a small margin. All of these but zoom() end following.
  const TimeRange& view() const { return view_; }  // empty: not yet chosen
  void set_view(TimeRange range);
  void show_all();
  void show_step(const rundb::StepRow& step);
  void show_middle_step();
  // What is selected: the chosen span, else the measured range.
  void fit_selection();
  // A stretch and some room on both sides.
  void fit(TimeRange range);
  void pan(TimeNs by);
  // A live run that is followed is zoomed around its end, so that it is still followed.
  void zoom(double factor, TimeNs around);
  TimeNs middle() const { return view_.begin + view_.width() / 2; }

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

  // Its spans on the critical path stand out, all others are dimmed.
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

  // Closes one thing: the search, else what is chosen, else the measured range, else measuring.
  void dismiss();

  const std::string& search() const { return search_; }
  void look_for(const std::string& text);
  // Which of the found spans was shown last; none: none yet.
  const std::optional<std::size_t>& found_index() const { return found_index_; }
  // The search went past the last one to the first, or past the first to the last.
  bool has_wrapped() const { return has_wrapped_; }
  // The next (1) or the previous (-1) found span is chosen and comes into the middle of the view;
  // the first time the one nearest to what is shown. Where the search still goes on, when it ends.
  void show_found(int direction);
  void focus_search() { focuses_search_ = true; }
  // The field of the search shall get the keyboard; true once.
  bool take_search_focus();

  TimelineFolding& folding() { return folding_; }
  const TimelineFolding& folding() const { return folding_; }
  // The row of this track shall be scrolled to and unfolded.
  void bring_track(std::int64_t track_id) { wanted_track_ = track_id; }
  std::optional<std::int64_t> take_wanted_track();
  // How far the rows are scrolled down, in pixels.
  float scroll() const { return scroll_; }
  void scroll_to(float y) { scroll_ = y; }

  // Frames are wanted without anything that happens: at once, or when the view has come to rest.
  enum class Motion : std::uint8_t { none, settles, moves };
  Motion motion() const { return motion_; }
  void set_motion(Motion motion) { motion_ = motion; }

 private:
  void set_view_within_run(TimeRange range);
  void show_last_steps();
  void show_all_of_run();
  bool has_findings() const;
  void show_awaited();

  const RunPieces* pieces_;
  TimeRange view_;
  bool follows_ = false;
  TimelineRequest asked_;
  const RunFeed* asked_of_ = nullptr;
  std::int64_t chosen_span_ = 0;
  std::optional<analyze::Cause> marked_cause_;
  bool measures_ = false;
  std::optional<TimeRange> measured_;
  std::optional<TimeRange> pinned_;
  std::string search_;
  std::optional<std::size_t> found_index_;
  bool has_wrapped_ = false;
  int awaited_direction_ = 0;  // asked for before the search had ended
  bool fits_chosen_ = false;   // when it has been read
  bool focuses_search_ = false;
  TimelineFolding folding_;
  std::optional<std::int64_t> wanted_track_;
  float scroll_ = 0;
  Motion motion_ = Motion::none;
};

}  // namespace sluice::gui
