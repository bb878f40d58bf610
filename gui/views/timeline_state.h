#pragma once
// The state of the timeline as somebody looks at it: its parts, and what concerns several of them.
// The timeline itself, other views and commands change it.
//
// Thread contract: the frame thread.

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "gui/views/measure.h"
#include "gui/views/span_search.h"
#include "gui/views/time_view.h"
#include "gui/views/timeline_picture.h"
#include "gui/views/timeline_rows.h"
#include "gui/views/view_history.h"
#include "profiler/analyze/cause.h"
#include "profiler/analyze/step_range.h"

namespace sluice::rundb {
struct SpanRow;
}

namespace sluice::gui {

struct SqlAnswer;

class TimelineState {
 public:
  // `pieces` lives longer.
  explicit TimelineState(const RunPieces& pieces)
      : view(pieces), picture(pieces), search(pieces), pieces_(&pieces) {}

  TimeView view;
  TimelinePicture picture;
  Measure measure;
  SpanSearch search;
  TimelineRows rows;
  ViewHistory history;
  std::shared_ptr<const SqlAnswer> answer_track;  // rows of a question as a track; null: none

  // Once a frame, after the pieces; seconds of the window's clock.
  void pick_up(double now_seconds = 0);
  // Nothing of the run before stays.
  void close() { *this = TimelineState(*pieces_); }

  std::int64_t chosen_span() const { return chosen_span_; }  // 0: none
  void choose(std::int64_t span_id);
  // The steps whose explanation was asked for last; none: nobody has asked.
  const std::optional<analyze::StepRange>& explained() const { return explained_; }
  // Details shows why they took as long as they did, until a span is chosen.
  void explain(const analyze::StepRange& steps);
  // Those that lie in the range with their greater part, else the one that it lies in.
  void explain_range(const TimeRange& range);
  // Brings it into view, and explains it.
  void show_step(const rundb::StepRow& step);
  // Chooses it and brings it into view, also on a row that is scrolled or folded away.
  void go_to(const rundb::SpanRow& span);
  // The same, when it has been read; a number that no span has changes nothing else.
  void go_to(std::int64_t span_id);
  // Where somebody looked before (-1) or after that (1).
  void go(int direction);
  // The next (1) or the previous (-1) found span is chosen and comes into the middle of the view.
  // Where the search still goes on, when it ends.
  void show_found(int direction);
  // The chosen span, else the measured range.
  void fit_selection();

  // Its spans on the critical path stand out, all others are dimmed.
  const std::optional<analyze::Cause>& marked_cause() const { return marked_cause_; }
  void mark_cause(std::optional<analyze::Cause> cause) { marked_cause_ = cause; }

  // Closes one thing: the search, else what is chosen, else the measured range, else measuring.
  void dismiss();

  // Somebody wants to write a note here.
  void write_note() { wants_note_ = true; }
  bool take_note_wish() { return std::exchange(wants_note_, false); }

  // Frames are wanted without anything that happens: at once, or when the view has come to rest.
  enum class Motion : std::uint8_t { none, settles, moves };
  Motion motion() const { return motion_; }
  void set_motion(Motion motion) { motion_ = motion; }

 private:
  void show(const FoundSpan& span);

  const RunPieces* pieces_;
  std::int64_t chosen_span_ = 0;
  // When the chosen span has been read.
  bool fits_chosen_ = false;
  bool goes_to_chosen_ = false;
  bool wants_note_ = false;
  std::optional<analyze::StepRange> explained_;
  std::optional<analyze::Cause> marked_cause_;
  Motion motion_ = Motion::none;
};

}  // namespace sluice::gui
