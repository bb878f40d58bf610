#pragma once
// Which stretch of the run the timeline shows, within the run and a small margin.
//
// Thread contract: the frame thread.

#include "base/units.h"

namespace sluice::rundb {
struct StepRow;
}

namespace sluice::gui {

struct RunPieces;

struct TimeRange {
  TimeNs begin = 0;
  TimeNs end = 0;
  TimeNs width() const { return end - begin; }
  bool operator==(const TimeRange&) const = default;
};

class TimeView {
 public:
  // `pieces` lives longer.
  explicit TimeView(const RunPieces& pieces) : pieces_(&pieces) {}

  // Once a frame, after the pieces: a first view is chosen, and one that follows moves on.
  void pick_up();

  const TimeRange& range() const { return range_; }  // empty: not yet chosen
  TimeNs middle() const { return range_.begin + range_.width() / 2; }

  // All of these but zoom() end following.
  void set(TimeRange range);
  void show_all();
  void show_step(const rundb::StepRow& step);
  void show_middle_step();
  // A stretch and some room on both sides.
  void fit(TimeRange range);
  // In the middle, near enough to be seen, and not so near that nothing else is.
  void show_span(TimeNs begin, TimeNs dur);
  void pan(TimeNs by);
  // A live run that is followed is zoomed around its end, so that it is still followed.
  void zoom(double factor, TimeNs around);

  // The view keeps to the end of a live run.
  bool follows() const { return follows_; }
  void toggle_following();

 private:
  void set_within_run(TimeRange range);
  void show_last_steps();
  void show_all_of_run();

  const RunPieces* pieces_;
  TimeRange range_;
  bool follows_ = false;
};

}  // namespace sluice::gui
