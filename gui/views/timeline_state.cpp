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

}  // namespace

void TimelineState::pick_up() {
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
}

void TimelineState::set_view_within_run(TimeRange range) {
  const RunSnapshot* run = pieces_->run.get();
  if (run == nullptr) return;
  const TimeNs all = std::max<TimeNs>(1, run->end_ts - run->begin_ts);
  const TimeNs width = std::clamp<TimeNs>(range.width(), kWidthMin, all * 2);
  const TimeNs middle = range.begin + range.width() / 2;
  const TimeNs begin = std::clamp(middle - width / 2, run->begin_ts - all / 2 - width / 2,
                                  run->end_ts + all / 2 - width / 2);
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
  const TimeNs room = std::max<TimeNs>(1, (run->end_ts - run->begin_ts) / 50);
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
  const TimeNs middle = view_.begin + view_.width() / 2;
  const auto step = std::ranges::lower_bound(steps, middle, {},
                                             [](const rundb::StepRow& s) { return s.ts + s.dur; });
  show_step(step == steps.end() ? steps.back() : *step);
}

void TimelineState::show_chosen() {
  if (pieces_->chosen == nullptr) return;
  const rundb::SpanRow& row = pieces_->chosen->row;
  set_view({row.ts - row.dur, row.ts + 2 * row.dur});
}

void TimelineState::pan(TimeNs by) { set_view({view_.begin + by, view_.end + by}); }

void TimelineState::zoom(double factor, TimeNs around) {
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
  chosen_span_ = span_id;
  if (pieces_->feed != nullptr) pieces_->feed->choose_span(span_id);
}

void TimelineState::go_to(const rundb::SpanRow& span) {
  choose(span.id);
  track_to_show_ = span.track_id;
  const TimeNs end_ts = span.ts + span.dur;
  const bool is_inside = span.ts >= view_.begin && end_ts <= view_.end;
  if (is_inside && span.dur * 500 >= view_.width()) return;
  // Near enough to be seen, and not so near that nothing else is.
  const TimeNs width =
      std::clamp<TimeNs>(view_.width(), span.dur * 2, std::max<TimeNs>(span.dur * 200, 1000));
  const TimeNs middle = span.ts + span.dur / 2;
  set_view({middle - width / 2, middle + width / 2});
}

std::optional<std::int64_t> TimelineState::take_track_to_show() {
  return std::exchange(track_to_show_, std::nullopt);
}

void TimelineState::look_for(const std::string& text) {
  search_ = text;
  found_index_ = 0;
  if (pieces_->feed != nullptr) pieces_->feed->search(text);
}

void TimelineState::show_found(int direction) {
  const Findings* found = pieces_->found.get();
  if (found == nullptr || found->spans.empty() || found->text != search_) return;
  const auto count = static_cast<std::int64_t>(found->spans.size());
  const std::int64_t next = static_cast<std::int64_t>(found_index_) + direction;
  found_index_ = static_cast<std::size_t>((next % count + count) % count);
  const FoundSpan& span = found->spans[found_index_];
  // Near enough to be seen, and not so near that nothing else is.
  const TimeNs width = std::clamp<TimeNs>(view_.width(), (span.end_ts - span.ts) * 2,
                                          std::max<TimeNs>((span.end_ts - span.ts) * 200, 1000));
  const TimeNs middle = span.ts + (span.end_ts - span.ts) / 2;
  set_view({middle - width / 2, middle + width / 2});
  choose(span.span_id);
}

bool TimelineState::take_search_focus() { return std::exchange(focuses_search_, false); }

}  // namespace sluice::gui
