#include "gui/views/timeline_state.h"

#include <algorithm>

#include "gui/data/span_lookup.h"
#include "gui/views/run_pieces.h"
#include "gui/views/span_details.h"

namespace sluice::gui {

void TimelineState::pick_up(double now_seconds) {
  motion_ = Motion::none;
  if (!view.follows()) history.note({view.range(), chosen_span_}, now_seconds);
  const RunSnapshot* run = pieces_->run.get();
  if (!pieces_->has_facts() || run->end_ts <= run->begin_ts) return;
  view.pick_up();
  // The match that was asked for before it had been read.
  if (const FoundSpan* span = search.awaited(view.range().begin); span != nullptr) show(*span);
  if (fits_chosen_) fit_selection();
  if (goes_to_chosen_) go_to(chosen_span_);
}

void TimelineState::go(int direction) {
  const std::optional<ViewHistory::Place> place = history.go(direction);
  if (!place) return;
  choose(place->span_id);
  view.set(place->range);
}

void TimelineState::go_to(std::int64_t span_id) {
  choose(span_id);
  goes_to_chosen_ = pieces_->chosen == nullptr || pieces_->chosen->row.id != span_id;
  if (!goes_to_chosen_) go_to(pieces_->chosen->row);
}

void TimelineState::fit_selection() {
  fits_chosen_ = false;
  if (chosen_span_ != 0) {
    fits_chosen_ = pieces_->chosen == nullptr || pieces_->chosen->row.id != chosen_span_;
    if (fits_chosen_) return;
    const rundb::SpanRow& row = pieces_->chosen->row;
    view.fit({row.ts, row.end_ts()});
    rows.bring(row.track_id);
  } else if (measure.range()) {
    view.fit(*measure.range());
  }
}

void TimelineState::choose(std::int64_t span_id) {
  if (span_id == chosen_span_) return;
  fits_chosen_ = goes_to_chosen_ = false;
  chosen_span_ = span_id;
  if (pieces_->feed != nullptr) pieces_->feed->choose_span(span_id);
}

void TimelineState::go_to(const rundb::SpanRow& span) {
  choose(span.id);
  rows.bring(span.track_id);
  const TimeRange& shown = view.range();
  const bool is_inside = span.ts >= shown.begin && span.end_ts() <= shown.end;
  if (is_inside && span.dur * 500 >= shown.width()) return;
  view.show_span(span.ts, span.dur);
}

void TimelineState::explain(const analyze::StepRange& steps) {
  choose(0);
  explained_ = steps;
  if (pieces_->feed != nullptr) pieces_->feed->explain(steps);
}

void TimelineState::explain_range(const TimeRange& range) {
  const auto is_most_inside = [&range](const rundb::StepRow& step) {
    const TimeNs both = std::min(range.end, step.ts + step.dur) - std::max(range.begin, step.ts);
    return both * 2 > step.dur;
  };
  const std::vector<rundb::StepRow>& steps = pieces_->steps();
  const auto first = std::ranges::find_if(steps, is_most_inside);
  if (first == steps.end()) {
    if (const rundb::StepRow* step = step_at(steps, range.begin); step != nullptr)
      explain({step->id, step->id});
    return;
  }
  const auto last = std::find_if_not(first, steps.end(), is_most_inside) - 1;
  explain({first->id, last->id});
}

void TimelineState::show_step(const rundb::StepRow& step) {
  view.show_step(step);
  explain({step.id, step.id});
}

void TimelineState::show_found(int direction) {
  if (const FoundSpan* span = search.step(direction, view.range().begin); span != nullptr)
    show(*span);
}

void TimelineState::show(const FoundSpan& span) {
  view.show_span(span.ts, span.end_ts - span.ts);
  choose(span.span_id);
  rows.bring(span.track_id);
}

void TimelineState::dismiss() {
  if (!search.text().empty()) {
    search.look_for("");
  } else if (chosen_span_ != 0) {
    choose(0);
  } else if (marked_cause_) {
    marked_cause_.reset();
  } else if (measure.range()) {
    measure.forget();
    explained_.reset();
  } else if (explained_) {
    explained_.reset();
  } else {
    measure.end();
  }
}

}  // namespace sluice::gui
