#include "gui/views/session.h"

#include <algorithm>
#include <cmath>

namespace sluice::gui {
namespace {

constexpr TimeNs kWidthMin = 200;  // nanoseconds on a whole screen

}  // namespace

void Session::pick_up() {
  if (feed == nullptr) return;
  run = feed->run();
  timeline = feed->timeline();
  minimap = feed->minimap();
  chosen = feed->chosen();
  verdict = feed->verdict();
  statistics = feed->statistics();
  found = feed->found();
  turning.pick_up(run.get(), statistics);
  if (!has_facts() || run->end_ts <= run->begin_ts) return;
  if (view.width() <= 0) {
    follows = run->is_live;
    // A few steps tell more at first sight than a whole run.
    if (steps().size() >= 3) {
      const rundb::StepRow& last = steps().back();
      set_view({steps()[steps().size() - 3].ts, last.ts + last.dur});
    } else {
      show_all();
    }
  }
  if (follows && run->is_live) {
    const TimeNs width = view.width();
    view = {run->end_ts - width * 97 / 100, run->end_ts + width * 3 / 100};
  }
}

void Session::close() { *this = Session(); }

void Session::choose(std::int64_t span_id) {
  if (span_id == chosen_span) return;
  chosen_span = span_id;
  if (feed != nullptr) feed->choose_span(span_id);
}

void Session::look_for(const std::string& text) {
  search = text;
  found_index = 0;
  if (feed != nullptr) feed->search(text);
}

void Session::set_view(TimeRange range) {
  if (run == nullptr) return;
  const TimeNs all = std::max<TimeNs>(1, run->end_ts - run->begin_ts);
  const TimeNs width = std::clamp<TimeNs>(range.width(), kWidthMin, all * 2);
  const TimeNs middle = range.begin + range.width() / 2;
  const TimeNs begin = std::clamp(middle - width / 2, run->begin_ts - all / 2 - width / 2,
                                  run->end_ts + all / 2 - width / 2);
  view = {begin, begin + width};
}

void Session::show_step(const rundb::StepRow& step) {
  follows = false;
  const TimeNs room = std::max<TimeNs>(1, step.dur / 25);
  set_view({step.ts - room, step.ts + step.dur + room});
}

void Session::show_all() {
  if (run == nullptr) return;
  const TimeNs room = std::max<TimeNs>(1, (run->end_ts - run->begin_ts) / 50);
  set_view({run->begin_ts - room, run->end_ts + room});
}

void Session::show_found(int direction) {
  if (found == nullptr || found->spans.empty() || found->text != search) return;
  const auto count = static_cast<std::int64_t>(found->spans.size());
  const std::int64_t next = static_cast<std::int64_t>(found_index) + direction;
  found_index = static_cast<std::size_t>((next % count + count) % count);
  const FoundSpan& span = found->spans[found_index];
  follows = false;
  // Near enough to be seen, and not so near that nothing else is.
  const TimeNs width = std::clamp<TimeNs>(view.width(), (span.end_ts - span.ts) * 2,
                                          std::max<TimeNs>((span.end_ts - span.ts) * 200, 1000));
  const TimeNs middle = span.ts + (span.end_ts - span.ts) / 2;
  set_view({middle - width / 2, middle + width / 2});
  choose(span.span_id);
}

void Session::zoom(double factor, TimeNs around) {
  const auto before = static_cast<double>(around - view.begin);
  const auto behind = static_cast<double>(view.end - around);
  set_view({around - static_cast<TimeNs>(std::llround(before * factor)),
            around + static_cast<TimeNs>(std::llround(behind * factor))});
}

void Session::pan(TimeNs by) {
  follows = false;
  set_view({view.begin + by, view.end + by});
}

}  // namespace sluice::gui
