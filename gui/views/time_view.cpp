#include "gui/views/time_view.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "gui/views/run_pieces.h"

namespace sluice::gui {
namespace {

constexpr TimeNs kWidthMin = 200;  // nanoseconds on a whole screen

// Beside the whole run, where all of it is shown.
TimeNs all_room(TimeNs all) { return std::max<TimeNs>(1, all / 50); }

}  // namespace

void TimeView::pick_up() {
  const RunSnapshot* run = pieces_->run.get();
  if (range_.width() <= 0) {
    follows_ = run->is_live;
    show_last_steps();
  }
  // Behind the last step of a run that ended there is next to nothing.
  if (follows_ && !run->is_live) {
    follows_ = false;
    show_last_steps();
  }
  if (follows_ && run->is_live) {
    const TimeNs width = range_.width();
    range_ = {run->end_ts - width * 97 / 100, run->end_ts + width * 3 / 100};
  }
}

void TimeView::set_within_run(TimeRange range) {
  const RunSnapshot* run = pieces_->run.get();
  if (run == nullptr) return;
  const TimeNs all = std::max<TimeNs>(1, run->end_ts - run->begin_ts);
  const TimeNs width = std::clamp<TimeNs>(range.width(), kWidthMin,
                                          std::max<TimeNs>(kWidthMin, all + 2 * all_room(all)));
  const TimeNs middle = range.begin + range.width() / 2;
  const TimeNs room = std::min(all_room(all), width / 20);
  const TimeNs first = run->begin_ts - room;
  const TimeNs begin =
      std::clamp(middle - width / 2, first, std::max(first, run->end_ts + room - width));
  range_ = {begin, begin + width};
}

// A few steps tell more at first sight than a whole run.
void TimeView::show_last_steps() {
  const std::vector<rundb::StepRow>& steps = pieces_->steps();
  if (steps.size() < 3) return show_all_of_run();
  const rundb::StepRow& last = steps.back();
  set_within_run({steps[steps.size() - 3].ts, last.ts + last.dur});
}

void TimeView::show_all_of_run() {
  const RunSnapshot* run = pieces_->run.get();
  if (run == nullptr) return;
  const TimeNs room = all_room(run->end_ts - run->begin_ts);
  set_within_run({run->begin_ts - room, run->end_ts + room});
}

void TimeView::set(TimeRange range) {
  follows_ = false;
  set_within_run(range);
}

void TimeView::show_all() {
  follows_ = false;
  show_all_of_run();
}

void TimeView::show_step(const rundb::StepRow& step) {
  const TimeNs room = std::max<TimeNs>(1, step.dur / 25);
  set({step.ts - room, step.ts + step.dur + room});
}

void TimeView::show_middle_step() {
  const std::vector<rundb::StepRow>& steps = pieces_->steps();
  if (steps.empty()) return;
  const auto step = std::ranges::lower_bound(steps, middle(), {},
                                             [](const rundb::StepRow& s) { return s.ts + s.dur; });
  show_step(step == steps.end() ? steps.back() : *step);
}

void TimeView::fit(TimeRange range) {
  const TimeNs room = std::max<TimeNs>(1, range.width() / 8);
  set({range.begin - room, range.end + room});
}

void TimeView::show_span(TimeNs begin, TimeNs dur) {
  const TimeNs width =
      std::clamp<TimeNs>(range_.width(), dur * 2, std::max<TimeNs>(dur * 200, 1000));
  const TimeNs middle = begin + dur / 2;
  set({middle - width / 2, middle + width / 2});
}

void TimeView::pan(TimeNs by) { set({range_.begin + by, range_.end + by}); }

void TimeView::zoom(double factor, TimeNs around) {
  if (follows_ && pieces_->run != nullptr) around = pieces_->run->end_ts;
  const auto before = static_cast<double>(around - range_.begin);
  const auto behind = static_cast<double>(range_.end - around);
  set_within_run({around - static_cast<TimeNs>(std::llround(before * factor)),
                  around + static_cast<TimeNs>(std::llround(behind * factor))});
}

void TimeView::toggle_following() { follows_ = !follows_ && pieces_->run->is_live; }

}  // namespace sluice::gui
