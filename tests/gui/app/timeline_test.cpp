// Mouse and keys on the timeline of a finished run.

#include <imgui_internal.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "gui/data/span_lookup.h"
#include "gui/views/path_track.h"
#include "gui/views/session.h"
#include "gui/views/timeline_layout.h"
#include "gui/views/timeline_place.h"
#include "gui/views/timeline_ruler.h"
#include "gui/widgets/look.h"
#include "tests/gui/app/window_fixture.h"

namespace sluice::gui {
namespace {

ImVec2 canvas_point(const Drive& drive, float x, float y) {
  const ImGuiTestItemInfo canvas = drive.test->ItemInfo("//Timeline/##canvas");
  IM_CHECK_RETV(canvas.ID != 0, ImVec2());
  return {canvas.RectFull.Min.x + canvas.RectFull.GetWidth() * x,
          canvas.RectFull.Min.y + canvas.RectFull.GetHeight() * y};
}

// Beneath the ruler and the critical path.
float rows_top(const Drive& drive) {
  return canvas_point(drive, 0, 0).y + ruler_height(drive.session().pieces.facts()) +
         px(kPathHeight);
}

float x_of(const Drive& drive, TimeNs ts) {
  const TimeRange& view = drive.session().timeline.view.range();
  const float low = canvas_point(drive, 0, 0).x + px(kTrackLabelWidth);
  return low + (canvas_point(drive, 1, 0).x - low) * static_cast<float>(ts - view.begin) /
                   static_cast<float>(view.width());
}

// The first span that can be seen in the middle of the row of a track.
std::int64_t choose_some_span(const Drive& drive) {
  for (float y = 0.1F; y < 0.9F; y += 0.02F) {
    for (float x = 0.2F; x < 0.95F; x += 0.05F) {
      drive.test->MouseMoveToPos(canvas_point(drive, x, y));
      drive.test->MouseClick(0);
      drive.test->Yield(2);
      if (drive.session().timeline.chosen_span() != 0)
        return drive.session().timeline.chosen_span();
    }
  }
  return 0;
}

}  // namespace

TEST_CASE("the timeline zooms to the cursor, pans, measures and chooses") {
  if (!can_run()) return;
  const std::string problem = drive(options_for(trained_run()), [](const Drive& d) {
    IM_CHECK(d.settles());
    Session& session = d.session();
    d.test->WindowFocus("//Timeline");
    d.test->ItemClick("//Timeline/Fit run");
    const TimeRange all = session.timeline.view.range();
    d.test->MouseMoveToPos(canvas_point(d, 0.5F, 0.5F));
    d.test->MouseWheelY(6);
    d.test->Yield(2);
    IM_CHECK_LT(session.timeline.view.range().width(), all.width() / 2);
    IM_CHECK(session.timeline.view.range().begin > all.begin &&
             session.timeline.view.range().end < all.end);
    const TimeRange zoomed = session.timeline.view.range();
    d.test->MouseDragWithDelta({-200, 0});
    IM_CHECK_GT(session.timeline.view.range().begin, zoomed.begin);
    IM_CHECK_LT(std::abs(session.timeline.view.range().width() - zoomed.width()), 3);
    d.test->KeyDown(ImGuiMod_Shift);
    d.test->MouseMoveToPos(canvas_point(d, 0.4F, 0.5F));
    d.test->MouseDragWithDelta({180, 0});
    d.test->KeyUp(ImGuiMod_Shift);
    IM_CHECK(session.timeline.measure.range().has_value());
    d.test->KeyPress(ImGuiKey_Escape);
    IM_CHECK(!session.timeline.measure.range().has_value());
    d.test->ItemClick("//Timeline/Fit step");
    IM_CHECK(d.settles());
    IM_CHECK(choose_some_span(d) != 0);
    IM_CHECK(d.comes_true([&] { return session.pieces.chosen != nullptr; }));
    d.test->KeyPress(ImGuiKey_F);
    IM_CHECK(session.timeline.view.range().width() <= 2 * session.pieces.chosen->row.dur + 200);
  });
  CHECK(problem == "");
}

TEST_CASE("Ctrl+drag zooms to the stretch that was drawn", "[long]") {
  if (!can_run()) return;
  const std::string problem = drive(options_for(trained_run()), [](const Drive& d) {
    IM_CHECK(d.settles());
    Session& session = d.session();
    d.test->ItemClick("//Timeline/Fit run");
    const TimeRange all = session.timeline.view.range();
    d.test->MouseMoveToPos(canvas_point(d, 0.4F, 0.5F));
    d.test->KeyDown(ImGuiMod_Ctrl);
    d.test->MouseDragWithDelta({200, 0});
    d.test->KeyUp(ImGuiMod_Ctrl);
    d.test->Yield(2);
    // 200 pixels of the canvas, less what the names at its left take, are now its whole width.
    const ImGuiTestItemInfo canvas = d.test->ItemInfo("//Timeline/##canvas");
    const double share = static_cast<double>(session.timeline.view.range().width()) /
                         static_cast<double>(all.width());
    IM_CHECK_GT(share, 0.9 * 200 / canvas.RectFull.GetWidth());
    IM_CHECK_LT(share, 1.6 * 200 / canvas.RectFull.GetWidth());
    IM_CHECK(session.timeline.view.range().begin > all.begin &&
             session.timeline.view.range().end < all.end);
    IM_CHECK(!session.timeline.view.follows());
  });
  CHECK(problem == "");
}

TEST_CASE("W A S D and Ctrl+wheel zoom at the cursor and pan, within the run") {
  if (!can_run()) return;
  const std::string problem = drive(options_for(trained_run()), [](const Drive& d) {
    IM_CHECK(d.settles());
    TimelineState& timeline = d.session().timeline;
    const RunSnapshot& run = *d.session().pieces.run;
    d.test->ItemClick("//Timeline/Fit run");
    d.test->WindowFocus("//Overview");  // the keys are the timeline's, whatever is in front
    const ImVec2 cursor = canvas_point(d, 0.7F, 0.5F);
    d.test->MouseMoveToPos(cursor);
    const auto stays_at_cursor = [&](const TimeRange& before) {
      const ImVec2 low = {canvas_point(d, 0, 0).x + 140, 0};
      const float right = canvas_point(d, 1, 0).x;
      const double share =
          static_cast<double>(cursor.x - low.x) / static_cast<double>(right - low.x);
      const auto ts_in = [share](const TimeRange& view) {
        return static_cast<double>(view.begin) + share * static_cast<double>(view.width());
      };
      return std::abs(ts_in(before) - ts_in(timeline.view.range())) <
             0.005 * static_cast<double>(before.width());
    };
    const TimeRange all = timeline.view.range();
    d.test->KeyPress(ImGuiKey_W);
    IM_CHECK_LT(timeline.view.range().width(), all.width() * 9 / 10);
    IM_CHECK(stays_at_cursor(all));
    const TimeRange near = timeline.view.range();
    d.test->KeyDown(ImGuiMod_Ctrl);
    d.test->MouseWheelY(3);
    d.test->KeyUp(ImGuiMod_Ctrl);
    d.test->Yield(2);
    IM_CHECK_LT(timeline.view.range().width(), near.width() * 7 / 10);
    IM_CHECK(stays_at_cursor(near));
    const TimeRange nearer = timeline.view.range();
    d.test->KeyPress(ImGuiKey_A);
    IM_CHECK_LT(timeline.view.range().begin, nearer.begin);
    d.test->KeyPress(ImGuiKey_D);
    IM_CHECK_EQ(timeline.view.range().begin, nearer.begin);
    // Held, it goes on by itself, to the end of the run and not beyond a small margin.
    const TimeNs margin = (run.end_ts - run.begin_ts) / 50 + 1;
    d.test->KeyDown(ImGuiKey_D);
    IM_CHECK(d.comes_true([&] { return timeline.view.range().end >= run.end_ts; }));
    d.test->Yield(20);
    IM_CHECK_LE(timeline.view.range().end, run.end_ts + margin);
    IM_CHECK(timeline.motion() == TimelineState::Motion::moves);
    d.test->KeyUp(ImGuiKey_D);
    d.test->Yield(3);
    IM_CHECK(timeline.motion() != TimelineState::Motion::moves);
    IM_CHECK(d.comes_true([&] { return timeline.motion() == TimelineState::Motion::none; }));
    for (int i = 0; i < 12; ++i) d.test->KeyPress(ImGuiKey_S);
    IM_CHECK_LE(timeline.view.range().end, run.end_ts + margin);
    IM_CHECK_GE(timeline.view.range().begin, run.begin_ts - margin);
    IM_CHECK_GE(timeline.view.range().width(), run.end_ts - run.begin_ts);
  });
  CHECK(problem == "");
}

TEST_CASE("a double click fits the span, else the step, under the cursor") {
  if (!can_run()) return;
  const std::string problem = drive(options_for(trained_run()), [](const Drive& d) {
    IM_CHECK(d.settles());
    Session& session = d.session();
    const auto fits = [&session](TimeNs ts, TimeNs dur) {
      const TimeRange& view = session.timeline.view.range();
      return view.begin <= ts && view.end >= ts + dur && view.width() <= 2 * dur + 200;
    };
    d.test->ItemClick("//Timeline/Fit step");
    IM_CHECK(d.settles());
    IM_CHECK(choose_some_span(d) != 0);
    IM_CHECK(d.comes_true([&] { return session.pieces.chosen != nullptr; }));
    // Frames of a busy machine are further apart than the clicks of a hand.
    ImGui::GetIO().MouseSingleClickDelay = 61;
    ImGui::GetIO().MouseDoubleClickTime = 60;
    const rundb::SpanRow span = session.pieces.chosen->row;
    d.test->MouseDoubleClick(0);
    d.test->Yield(2);
    IM_CHECK(fits(span.ts, span.dur));
    IM_CHECK_EQ(session.timeline.chosen_span(), span.id);
    // On the ruler: a step, all of which is then shown.
    const auto steps = session.pieces.steps();  // a copy: what is read may be read anew
    const auto longest = std::ranges::max_element(steps, {}, &rundb::StepRow::dur);
    IM_CHECK(longest != steps.end());
    const auto show_all_steps = [&] {
      session.timeline.view.fit({steps.front().ts, steps.back().ts + steps.back().dur});
      d.test->Yield(2);
      return x_of(d, longest->ts + longest->dur / 2);
    };
    const float on_ruler = show_all_steps();
    d.test->MouseMoveToPos({on_ruler, canvas_point(d, 0, 0).y + 8});
    d.test->MouseDoubleClick(0);
    d.test->Yield(2);
    IM_CHECK(fits(longest->ts, longest->dur));
    // An empty place in the row of a group that has no spans of its own.
    const float in_row = show_all_steps();
    const TimelineLayout layout = layout_of(*session.pieces.run, session.timeline.rows.folding());
    const auto empty = std::ranges::find_if(layout.rows, [](const TimelineRow& row) {
      return row.kind == TimelineRow::Kind::group && row.track_id < 0;
    });
    IM_CHECK(empty != layout.rows.end());
    const float rows = rows_top(d);
    d.test->MouseMoveToPos({in_row, rows + empty->y + empty->height / 2});
    d.test->MouseDoubleClick(0);
    d.test->Yield(2);
    IM_CHECK(fits(longest->ts, longest->dur));
  });
  CHECK(problem == "");
}

TEST_CASE("groups fold into a summary, and rows of a phase that is over into a word") {
  if (!can_run()) return;
  const std::string problem = drive(options_for(trained_run()), [](const Drive& d) {
    IM_CHECK(d.settles());
    Session& session = d.session();
    const auto layout = [&] {
      return layout_of(*session.pieces.run, session.timeline.rows.folding());
    };
    const auto head_of = [](const TimelineLayout& rows, const std::string& group) {
      return std::ranges::find(rows.rows, group, &TimelineRow::label);
    };
    const TimelineLayout open = layout();
    const auto head = head_of(open, "csd0");
    IM_CHECK(head != open.rows.end());
    IM_CHECK(head->has_rows);
    // The last steps are shown: the state was created long before, and its row is away.
    IM_CHECK_EQ(head->away.size(), 1U);
    IM_CHECK_STR_EQ(session.pieces.facts().track(head->away[0])->name.c_str(), "create_state");
    const float rows = rows_top(d);
    d.test->MouseMoveToPos({canvas_point(d, 0, 0).x + 40, rows + head->y + head->height / 2});
    d.test->MouseClick(0);
    d.test->Yield(2);
    const TimelineLayout closed = layout();
    IM_CHECK(head_of(closed, "csd0")->is_summary());
    IM_CHECK_LT(closed.height, open.height);
    IM_CHECK(d.settles());
    d.picture_with_all("timeline, a group folded");
    d.test->MouseClick(0);
    d.test->Yield(2);
    // Back at the begin, at rest, the row is there again.
    d.test->ItemClick("//Timeline/Fit run");
    IM_CHECK(d.comes_true([&] { return head_of(layout(), "create_state") != layout().rows.end(); },
                          std::chrono::seconds(20)));
    IM_CHECK(d.settles());
    d.picture_with_all("timeline, whole run");
  });
  CHECK(problem == "");
}

TEST_CASE("the bar at the right scrolls the tracks", "[long]") {
  if (!can_run()) return;
  AppOptions options = options_for(trained_run());
  options.window.height = 600;
  const std::string problem = drive(options, [](const Drive& d) {
    IM_CHECK(d.settles());
    TimelineState& timeline = d.session().timeline;
    const ImVec2 top = canvas_point(d, 1, 0.3F);
    d.test->MouseMoveToPos({top.x + 5, top.y});
    d.test->MouseDragWithDelta({0, 60});
    d.test->Yield(2);
    IM_CHECK_GT(timeline.rows.scroll(), 60.0F);
    d.test->MouseMoveToPos(canvas_point(d, 0.5F, 0.5F));
    d.test->KeyDown(ImGuiMod_Shift);
    d.test->MouseWheelY(100);
    d.test->KeyUp(ImGuiMod_Shift);
    d.test->Yield(2);
    IM_CHECK_EQ(timeline.rows.scroll(), 0.0F);
  });
  CHECK(problem == "");
}

TEST_CASE("Find scrolls to its match and centres it, Enter goes on, the other end is said") {
  if (!can_run()) return;
  AppOptions options = options_for(trained_run());
  options.window.height = 600;
  const std::string problem = drive(options, [](const Drive& d) {
    IM_CHECK(d.settles());
    Session& session = d.session();
    TimelineState& timeline = session.timeline;
    timeline.rows.scroll_to(10'000);  // down to the last track; commits are among the first
    d.test->Yield(2);
    IM_CHECK_GT(timeline.rows.scroll(), 100.0F);
    const float rows_height = canvas_point(d, 0, 1).y - rows_top(d);
    const auto is_in_sight = [&] {
      const FoundSpan& span = session.pieces.found->spans[*timeline.search.found_index()];
      const TimelineLayout layout = layout_of(*session.pieces.run, timeline.rows.folding());
      const TimelineRow* row = layout.row_of(span.track_id);
      const TimeNs off = std::abs(span.ts + (span.end_ts - span.ts) / 2 - timeline.view.middle());
      return row != nullptr && row->y >= timeline.rows.scroll() &&
             row->y + row->height <= timeline.rows.scroll() + rows_height &&
             off <= timeline.view.range().width() / 4 && timeline.chosen_span() == span.span_id;
    };
    d.test->KeyPress(ImGuiMod_Ctrl | ImGuiKey_F);
    d.test->Yield(3);
    d.test->KeyChars("commit");
    d.test->KeyPress(ImGuiKey_Enter);  // also before the search has ended
    IM_CHECK(d.comes_true([&] { return timeline.search.found_index().has_value(); }));
    d.test->Yield(2);
    IM_CHECK(is_in_sight());
    const std::size_t count = session.pieces.found->spans.size();
    IM_CHECK_GT(count, 2U);
    const std::size_t first = *timeline.search.found_index();
    // The field keeps the keyboard: Enter goes on, past the last one to the first.
    for (std::size_t i = 1; i <= count; ++i) {
      d.test->KeyPress(ImGuiKey_Enter);
      d.test->Yield(3);
      IM_CHECK_EQ(*timeline.search.found_index(), (first + i) % count);
      IM_CHECK_EQ(timeline.search.has_wrapped(), (first + i) % count == 0);
      IM_CHECK(is_in_sight());
    }
    d.test->KeyPress(ImGuiMod_Shift | ImGuiKey_Enter);
    d.test->Yield(3);
    IM_CHECK_EQ(*timeline.search.found_index(), (first + count - 1) % count);
    d.picture_with_all("timeline, found");
    d.test->KeyPress(ImGuiKey_Escape);
    d.test->Yield(2);
    IM_CHECK(timeline.search.text().empty());
    IM_CHECK(timeline.chosen_span() != 0);
  });
  CHECK(problem == "");
}

TEST_CASE("Esc closes one thing at a time; a measured range stays until then") {
  if (!can_run()) return;
  const std::string problem = drive(options_for(trained_run()), [](const Drive& d) {
    IM_CHECK(d.settles());
    Session& session = d.session();
    TimelineState& timeline = session.timeline;
    d.test->ItemClick("//Timeline/Fit step");
    IM_CHECK(d.settles());
    d.test->KeyDown(ImGuiMod_Shift);
    d.test->MouseMoveToPos(canvas_point(d, 0.4F, 0.5F));
    d.test->MouseDragWithDelta({180, 0});
    d.test->KeyUp(ImGuiMod_Shift);
    const std::optional<TimeRange> measured = timeline.measure.range();
    IM_CHECK(measured.has_value());
    d.test->ItemClick("//Timeline/Fit run");
    d.test->KeyPress(ImGuiKey_F);
    IM_CHECK(timeline.view.range().begin <= measured->begin &&
             timeline.view.range().end >= measured->end);
    IM_CHECK_LT(timeline.view.range().width(), 2 * measured->width());
    IM_CHECK(d.settles());
    IM_CHECK(choose_some_span(d) != 0);
    IM_CHECK(timeline.measure.range() == measured);
    d.picture_with_all("timeline, measured");
    timeline.search.look_for("commit");
    d.test->KeyPress(ImGuiMod_Shift | ImGuiKey_Slash);
    d.test->Yield(2);
    d.test->MenuAction(ImGuiTestAction_Hover, "//##MainMenuBar/Timeline/Fit the run");
    const auto is_shown = [&d](const char* window) {
      const ImGuiWindow* found = d.test->GetWindowByRef(window);
      return found != nullptr && found->Active;
    };
    IM_CHECK(ImGui::IsPopupOpen("", ImGuiPopupFlags_AnyPopupId | ImGuiPopupFlags_AnyPopupLevel));
    for (int i = 0; i < 4 && ImGui::GetCurrentContext()->OpenPopupStack.Size > 0; ++i) {
      d.test->KeyPress(ImGuiKey_Escape);
      d.test->Yield(2);
    }
    IM_CHECK_EQ(ImGui::GetCurrentContext()->OpenPopupStack.Size, 0);
    IM_CHECK(is_shown("//Shortcuts"));
    const auto escape = [&d] {
      d.test->KeyPress(ImGuiKey_Escape);
      d.test->Yield(3);
    };
    escape();
    IM_CHECK(!is_shown("//Shortcuts"));
    IM_CHECK(!timeline.search.text().empty());
    escape();
    IM_CHECK(timeline.search.text().empty());
    IM_CHECK(timeline.chosen_span() != 0);
    escape();
    IM_CHECK_EQ(timeline.chosen_span(), 0);
    IM_CHECK(timeline.measure.range() == measured);
    escape();
    IM_CHECK(!timeline.measure.range().has_value());
  });
  CHECK(problem == "");
}

TEST_CASE("spans are found by name, one after the other", "[long]") {
  if (!can_run()) return;
  const std::string problem = drive(options_for(trained_run()), [](const Drive& d) {
    IM_CHECK(d.settles());
    Session& session = d.session();
    d.test->KeyPress(ImGuiMod_Ctrl | ImGuiKey_F);
    d.test->Yield(3);
    d.test->ItemInput("//Timeline/##search");
    d.test->KeyChars("state_write");
    IM_CHECK(d.comes_true([&] {
      return session.pieces.found != nullptr && session.pieces.found->text == "state_write" &&
             !session.pieces.found->spans.empty();
    }));
    d.test->KeyPress(ImGuiKey_Enter);
    const std::int64_t first = session.timeline.chosen_span();
    IM_CHECK(first != 0);
    d.test->ItemClick("//Timeline/>");
    IM_CHECK(session.timeline.chosen_span() != 0 && session.timeline.chosen_span() != first);
    d.test->ItemClick("//Timeline/<");
    IM_CHECK_EQ(session.timeline.chosen_span(), first);
  });
  CHECK(problem == "");
}

}  // namespace sluice::gui
