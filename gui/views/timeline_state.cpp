#include "gui/views/timeline_state.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

namespace sluice::gui {
namespace {

constexpr TimeNs kWidthMin = 200;  // nanoseconds on a whole screen

// Quantised, so that panning and following ask for something new only now and then.
TimelineRequest request_for(const TimeRange& view, float width) {
  const auto column_ns = static_cast<TimeNs>(static_cast<double>(view.width()) /
                                             std::max(1.0, static_cast<double>(width)));
  const auto exact = static_cast<std::uint64_t>(std::max<TimeNs>(1, column_ns));
  const auto quarter =
      static_cast<TimeNs>(std::bit_ceil(static_cast<std::uint64_t>(view.width() / 4 + 1)));
  const auto down = [quarter](TimeNs ts) {
    const TimeNs rest = ts % quarter;
    return ts - (rest < 0 ? rest + quarter : rest);
  };
  return {down(view.begin), down(view.end) + quarter, static_cast<TimeNs>(std::bit_floor(exact))};
}

// Beside the whole run, where all of it is shown.
TimeNs all_room(TimeNs all) { return std::max<TimeNs>(1, all / 50); }

}  // namespace

void TimelineState::pick_up() {
  motion_ = Motion::none;
  const RunSnapshot* run = pieces_->run.get();
  if (!pieces_->has_facts() || run->end_ts <= run->begin_ts) return;
  if (view_.width() <= 0) {
    follows_ = run->is_live;
    show_last_steps();
  }
  // Behind the last step of a run that ended there is next to nothing.
  if (follows_ && !run->is_live) {
    follows_ = false;
    show_last_steps();
  }
  if (follows_ && run->is_live) {
    const TimeNs width = view_.width();
    view_ = {run->end_ts - width * 97 / 100, run->end_ts + width * 3 / 100};
  }
  show_awaited();
}

// What was asked for before it had been read.
void TimelineState::show_awaited() {
  if (awaited_direction_ != 0 && has_findings()) show_found(std::exchange(awaited_direction_, 0));
  if (fits_chosen_) fit_selection();
}

void TimelineState::set_view_within_run(TimeRange range) {
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
  view_ = {begin, begin + width};
}

// A few steps tell more at first sight than a whole run.
void TimelineState::show_last_steps() {
  const std::vector<rundb::StepRow>& steps = pieces_->steps();
  if (steps.size() < 3) return show_all_of_run();
  const rundb::StepRow& last = steps.back();
  set_view_within_run({steps[steps.size() - 3].ts, last.ts + last.dur});
}

void TimelineState::show_all_of_run() {
  const RunSnapshot* run = pieces_->run.get();
  if (run == nullptr) return;
  const TimeNs room = all_room(run->end_ts - run->begin_ts);
  set_view_within_run({run->begin_ts - room, run->end_ts + room});
}

void TimelineState::set_view(TimeRange range) {
  follows_ = false;
  set_view_within_run(range);
}

void TimelineState::show_all() {
  follows_ = false;
  show_all_of_run();
}

void TimelineState::show_step(const rundb::StepRow& step) {
  const TimeNs room = std::max<TimeNs>(1, step.dur / 25);
  set_view({step.ts - room, step.ts + step.dur + room});
}

void TimelineState::show_middle_step() {
  const std::vector<rundb::StepRow>& steps = pieces_->steps();
  if (steps.empty()) return;
  const auto step = std::ranges::lower_bound(steps, middle(), {},
                                             [](const rundb::StepRow& s) { return s.ts + s.dur; });
  show_step(step == steps.end() ? steps.back() : *step);
}

void TimelineState::fit(TimeRange range) {
  const TimeNs room = std::max<TimeNs>(1, range.width() / 8);
  set_view({range.begin - room, range.end + room});
}

void TimelineState::fit_selection() {
  fits_chosen_ = false;
  if (chosen_span_ != 0) {
    fits_chosen_ = pieces_->chosen == nullptr || pieces_->chosen->row.id != chosen_span_;
    if (fits_chosen_) return;
    const rundb::SpanRow& row = pieces_->chosen->row;
    fit({row.ts, row.ts + row.dur});
    bring_track(row.track_id);
  } else if (measured_) {
    fit(*measured_);
  }
}

void TimelineState::pan(TimeNs by) { set_view({view_.begin + by, view_.end + by}); }

void TimelineState::zoom(double factor, TimeNs around) {
  if (follows_ && pieces_->run != nullptr) around = pieces_->run->end_ts;
  const auto before = static_cast<double>(around - view_.begin);
  const auto behind = static_cast<double>(view_.end - around);
  set_view_within_run({around - static_cast<TimeNs>(std::llround(before * factor)),
                       around + static_cast<TimeNs>(std::llround(behind * factor))});
}

void TimelineState::ask_for_picture(float width) {
  RunFeed* feed = pieces_->feed.get();
  const TimelineRequest wanted = request_for(view_, width);
  if (wanted == asked_ && asked_of_ == feed) return;
  const TimelineWindow* has = pieces_->timeline.get();
  const bool is_enough = has != nullptr && asked_of_ == feed && has->request == asked_ &&
                         has->request.column_ns == wanted.column_ns &&
                         has->covers(view_.begin, view_.end) && !follows_;
  if (is_enough) return;
  asked_ = wanted;
  asked_of_ = feed;
  feed->want_timeline(wanted);
}

bool TimelineState::has_picture() const {
  return pieces_->timeline != nullptr && pieces_->timeline->request == asked_;
}

void TimelineState::choose(std::int64_t span_id) {
  if (span_id == chosen_span_) return;
  fits_chosen_ = false;
  chosen_span_ = span_id;
  if (pieces_->feed != nullptr) pieces_->feed->choose_span(span_id);
}

void TimelineState::go_to(const rundb::SpanRow& span) {
  choose(span.id);
  bring_track(span.track_id);
  const TimeNs end_ts = span.ts + span.dur;
  const bool is_inside = span.ts >= view_.begin && end_ts <= view_.end;
  if (is_inside && span.dur * 500 >= view_.width()) return;
  // Near enough to be seen, and not so near that nothing else is.
  const TimeNs width =
      std::clamp<TimeNs>(view_.width(), span.dur * 2, std::max<TimeNs>(span.dur * 200, 1000));
  const TimeNs middle = span.ts + span.dur / 2;
  set_view({middle - width / 2, middle + width / 2});
}

void TimelineState::dismiss() {
  if (!search_.empty()) {
    look_for("");
  } else if (chosen_span_ != 0) {
    choose(0);
  } else if (marked_cause_) {
    marked_cause_.reset();
  } else if (measured_) {
    measured_.reset();
  } else {
    measures_ = false;
  }
}

void TimelineState::look_for(const std::string& text) {
  search_ = text;
  found_index_.reset();
  has_wrapped_ = false;
  awaited_direction_ = 0;
  if (pieces_->feed != nullptr) pieces_->feed->search(text);
}

bool TimelineState::has_findings() const {
  return pieces_->found != nullptr && pieces_->found->text == search_;
}

void TimelineState::show_found(int direction) {
  if (search_.empty()) return;
  if (!has_findings()) {
    awaited_direction_ = direction;
    return;
  }
  const std::vector<FoundSpan>& spans = pieces_->found->spans;
  if (spans.empty()) return;
  const auto count = static_cast<std::int64_t>(spans.size());
  std::int64_t next = 0;
  if (found_index_) {
    next = static_cast<std::int64_t>(*found_index_) + direction;
  } else {
    const auto here = std::ranges::lower_bound(spans, view_.begin, {}, &FoundSpan::ts);
    next = (here - spans.begin()) - (direction < 0 ? 1 : 0);
  }
  has_wrapped_ = next < 0 || next >= count;
  found_index_ = static_cast<std::size_t>((next % count + count) % count);
  const FoundSpan& span = spans[*found_index_];
  // Near enough to be seen, and not so near that nothing else is.
  const TimeNs dur = span.end_ts - span.ts;
  const TimeNs width =
      std::clamp<TimeNs>(view_.width(), dur * 2, std::max<TimeNs>(dur * 200, 1000));
  set_view({span.ts + dur / 2 - width / 2, span.ts + dur / 2 + width / 2});
  choose(span.span_id);
  bring_track(span.track_id);
}

std::optional<std::int64_t> TimelineState::take_wanted_track() {
  return std::exchange(wanted_track_, std::nullopt);
}

bool TimelineState::take_search_focus() { return std::exchange(focuses_search_, false); }

}  // namespace sluice::gui
