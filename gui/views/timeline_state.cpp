#include "gui/views/timeline_state.h"

#include "gui/data/span_lookup.h"
#include "gui/views/run_pieces.h"

namespace sluice::gui {

void TimelineState::pick_up() {
  motion_ = Motion::none;
  const RunSnapshot* run = pieces_->run.get();
  if (!pieces_->has_facts() || run->end_ts <= run->begin_ts) return;
  view.pick_up();
  // The match that was asked for before it had been read.
  if (const FoundSpan* span = search.awaited(view.range().begin); span != nullptr) show(*span);
  if (fits_chosen_) fit_selection();
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
  fits_chosen_ = false;
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
  } else {
    measure.end();
  }
}

}  // namespace sluice::gui
