// What somebody looks at on the timeline, without a window around it.

#include "gui/views/timeline_state.h"

#include <catch2/catch.hpp>

#include "gui/data/span_lookup.h"
#include "gui/data/timeline_window.h"
#include "gui/views/run_pieces.h"

namespace sluice::gui {
namespace {

// Ten steps of 100 us each, from 1 ms on.
RunPieces pieces_of_run(bool is_live) {
  std::vector<rundb::StepRow> steps;
  for (std::int64_t id = 0; id < 10; ++id)
    steps.push_back({.id = id, .ts = 1'000'000 + id * 100'000, .dur = 100'000});
  RunSnapshot run;
  run.facts = std::make_shared<const RunFacts>();
  run.steps = std::make_shared<const std::vector<rundb::StepRow>>(std::move(steps));
  run.begin_ts = 1'000'000;
  run.end_ts = 2'000'000;
  run.is_live = is_live;
  RunPieces pieces;
  pieces.run = std::make_shared<const RunSnapshot>(std::move(run));
  return pieces;
}

void add_found(RunPieces& pieces, const std::string& text, const std::vector<TimeNs>& begins) {
  Findings found;
  found.text = text;
  for (const TimeNs ts : begins) {
    FoundSpan& span = found.spans.emplace_back();
    span.span_id = ts;
    span.ts = ts;
    span.end_ts = ts + 1000;
  }
  pieces.found = std::make_shared<const Findings>(std::move(found));
}

}  // namespace

TEST_CASE("the first view is of the last three steps, and follows only a live run") {
  const RunPieces finished = pieces_of_run(false);
  TimelineState timeline(finished);
  timeline.pick_up();
  CHECK(timeline.view.range() == TimeRange{1'700'000, 2'000'000});
  CHECK_FALSE(timeline.view.follows());
  timeline.view.toggle_following();
  CHECK_FALSE(timeline.view.follows());
  const RunPieces live = pieces_of_run(true);
  TimelineState followed(live);
  followed.pick_up();
  CHECK(followed.view.follows());
  CHECK(followed.view.range().end > 2'000'000);
}

TEST_CASE("when a followed run ends the view rests on its last steps") {
  RunPieces pieces = pieces_of_run(true);
  TimelineState timeline(pieces);
  timeline.pick_up();
  CHECK(timeline.view.range().end > 2'000'000);
  pieces.run = pieces_of_run(false).run;
  timeline.pick_up();
  CHECK_FALSE(timeline.view.follows());
  CHECK(timeline.view.range() == TimeRange{1'700'000, 2'000'000});
  // One that somebody moved stays where it is.
  pieces.run = pieces_of_run(true).run;
  timeline.view.set({1'100'000, 1'200'000});
  pieces.run = pieces_of_run(false).run;
  timeline.pick_up();
  CHECK(timeline.view.range() == TimeRange{1'100'000, 1'200'000});
}

TEST_CASE("moving the view ends following, and zooming does not") {
  const RunPieces live = pieces_of_run(true);
  TimelineState timeline(live);
  timeline.pick_up();
  timeline.view.zoom(0.5, 2'000'000);
  CHECK(timeline.view.follows());
  const auto ends_following = [&](const auto& move) {
    if (!timeline.view.follows()) timeline.view.toggle_following();
    move();
    return !timeline.view.follows();
  };
  CHECK(ends_following([&] { timeline.view.pan(-1000); }));
  CHECK(ends_following([&] { timeline.view.show_all(); }));
  CHECK(ends_following([&] { timeline.view.show_middle_step(); }));
  CHECK(ends_following([&] { timeline.view.set({1'200'000, 1'300'000}); }));
}

TEST_CASE("the view stays within the run and a small margin, however far it is moved") {
  const RunPieces pieces = pieces_of_run(false);
  TimelineState timeline(pieces);
  timeline.pick_up();
  timeline.view.pan(1'000'000'000);
  CHECK(timeline.view.range() == TimeRange{1'715'000, 2'015'000});  // a twentieth of the view
  timeline.view.pan(-1'000'000'000);
  CHECK(timeline.view.range() == TimeRange{985'000, 1'285'000});
  timeline.view.zoom(1e6, 1'500'000);
  CHECK(timeline.view.range() == TimeRange{980'000, 2'020'000});
  timeline.view.pan(1000);
  CHECK(timeline.view.range() == TimeRange{980'000, 2'020'000});
  timeline.view.zoom(1e-9, 1'500'000);
  CHECK(timeline.view.range().width() == 200);
}

TEST_CASE("the step in the middle is shown") {
  const RunPieces pieces = pieces_of_run(false);
  TimelineState timeline(pieces);
  timeline.view.set({1'340'000, 1'360'000});
  timeline.view.show_middle_step();
  CHECK(timeline.view.range() == TimeRange{1'300'000 - 4000, 1'400'000 + 4000});
  timeline.view.set({2'300'000, 2'400'000});
  timeline.view.show_middle_step();
  CHECK(timeline.view.range() == TimeRange{1'900'000 - 4000, 2'000'000 + 4000});
}

TEST_CASE("what is selected is fitted: the chosen span, when it has been read, else the range") {
  RunPieces pieces = pieces_of_run(false);
  TimelineState timeline(pieces);
  timeline.pick_up();
  const TimeRange before = timeline.view.range();
  timeline.fit_selection();
  CHECK(timeline.view.range() == before);
  timeline.measure.set({1'200'000, 1'280'000});
  timeline.fit_selection();
  CHECK(timeline.view.range() == TimeRange{1'190'000, 1'290'000});
  timeline.choose(7);
  timeline.fit_selection();
  CHECK(timeline.view.range() == TimeRange{1'190'000, 1'290'000});
  ChosenSpan chosen;
  chosen.row.id = 7;
  chosen.row.track_id = 3;
  chosen.row.ts = 1'500'000;
  chosen.row.dur = 8000;
  pieces.chosen = std::make_shared<const ChosenSpan>(chosen);
  timeline.pick_up();
  CHECK(timeline.view.range() == TimeRange{1'499'000, 1'509'000});
  CHECK(timeline.rows.take_wanted() == 3);
  CHECK_FALSE(timeline.rows.take_wanted());
}

TEST_CASE("found spans are shown in turn, from the one at hand on and round") {
  RunPieces pieces = pieces_of_run(false);
  TimelineState timeline(pieces);
  timeline.view.set({1'300'000, 1'400'000});
  timeline.search.look_for("update");
  timeline.show_found(1);  // the search goes on
  CHECK(timeline.chosen_span() == 0);
  add_found(pieces, "update", {1'100'000, 1'500'000, 1'900'000});
  timeline.pick_up();
  CHECK(timeline.chosen_span() == 1'500'000);
  for (const std::int64_t id : {1'900'000, 1'100'000, 1'500'000}) {
    timeline.show_found(1);
    CHECK(timeline.chosen_span() == id);
    CHECK(timeline.search.has_wrapped() == (id == 1'100'000));
    CHECK(timeline.view.middle() == id + 500);
  }
  timeline.show_found(-1);
  timeline.show_found(-1);
  CHECK(timeline.chosen_span() == 1'900'000);
  CHECK(timeline.search.has_wrapped());
  timeline.search.look_for("write");
  timeline.show_found(1);
  CHECK(timeline.chosen_span() == 1'900'000);
}

TEST_CASE("one thing is dismissed at a time") {
  RunPieces pieces = pieces_of_run(false);
  TimelineState timeline(pieces);
  timeline.search.look_for("update");
  timeline.choose(7);
  timeline.measure.set({1'100'000, 1'200'000});
  timeline.measure.toggle();
  const auto left = [&timeline] {
    return std::vector<bool>{!timeline.search.text().empty(), timeline.chosen_span() != 0,
                             timeline.measure.range().has_value(), timeline.measure.is_on()};
  };
  using Left = std::vector<bool>;
  timeline.dismiss();
  CHECK(left() == Left{false, true, true, true});
  timeline.dismiss();
  CHECK(left() == Left{false, false, true, true});
  timeline.dismiss();
  CHECK(left() == Left{false, false, false, true});
  timeline.dismiss();
  CHECK(left() == Left{false, false, false, false});
}

TEST_CASE("nothing of a run stays when another one is opened") {
  const RunPieces pieces = pieces_of_run(true);
  TimelineState timeline(pieces);
  timeline.pick_up();
  timeline.measure.set({1'100'000, 1'200'000});
  timeline.measure.pin();
  timeline.search.look_for("update");
  timeline.choose(7);
  timeline.close();
  CHECK(timeline.view.range() == TimeRange{});
  CHECK_FALSE(timeline.measure.range());
  CHECK_FALSE(timeline.measure.pinned());
  CHECK(timeline.search.text().empty());
  CHECK(timeline.chosen_span() == 0);
  CHECK_FALSE(timeline.view.follows());
}

}  // namespace sluice::gui
