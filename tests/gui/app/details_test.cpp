// The chosen span in words and what leads from it to others; the critical path on the timeline.

#include <imgui_internal.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <sstream>

#include "gui/data/span_lookup.h"
#include "gui/data/sql_console.h"
#include "gui/data/step_paths.h"
#include "gui/data/verdict.h"
#include "gui/views/answer_track.h"
#include "gui/views/path_track.h"
#include "gui/views/session.h"
#include "gui/views/span_details.h"
#include "gui/views/timeline_layout.h"
#include "gui/views/timeline_ruler.h"
#include "gui/widgets/look.h"
#include "profiler/analyze/step_explanation.h"
#include "profiler/analyze/step_verdicts.h"
#include "tests/gui/app/window_fixture.h"
#include "tests/storage/rundb/rundb_fixture.h"

namespace sluice::gui {
namespace {

// On the track of the critical path, at a share of its width: beneath the ruler.
ImVec2 path_point(const Drive& d, float x) {
  const ImGuiTestItemInfo canvas = d.test->ItemInfo("//Timeline/##canvas");
  IM_CHECK_RETV(canvas.ID != 0, ImVec2());
  const float left = canvas.RectFull.Min.x + px(140);
  return {left + (canvas.RectFull.Max.x - left) * x,
          canvas.RectFull.Min.y + ruler_height(d.session().pieces.facts()) + px(kPathHeight / 2)};
}

// The timeline shows what its view asks for, the critical path with it.
bool is_drawn_with_path(const Drive& d) {
  const Session& session = d.session();
  return d.comes_true([&] {
    return session.timeline.picture.asked().end > 0 && session.timeline.picture.is_there() &&
           session.pieces.paths != nullptr && session.pieces.paths->is_complete;
  });
}

void click_at(const Drive& d, ImVec2 place) {
  d.test->MouseMoveToPos(place);
  d.test->MouseClick(0);
  d.test->Yield(2);
}

bool has_chosen(const Drive& d) {
  const Session& session = d.session();
  return session.pieces.chosen != nullptr &&
         session.pieces.chosen->row.id == session.timeline.chosen_span();
}

// Types a name into the search and takes the first span that is found.
void find_span(const Drive& d, const char* name) {
  Session& session = d.session();
  d.test->KeyPress(ImGuiMod_Ctrl | ImGuiKey_F);
  d.test->Yield(3);
  d.test->ItemInput("//Timeline/##search");
  d.test->KeyChars(name);
  IM_CHECK(d.comes_true([&] {
    return session.pieces.found != nullptr && session.pieces.found->text == name &&
           !session.pieces.found->spans.empty();
  }));
  d.test->KeyPress(ImGuiKey_Enter);
  IM_CHECK(d.comes_true([&] { return session.timeline.chosen_span() != 0 && has_chosen(d); }));
}

// The box that stands for a span alone; null: the picture has none yet.
const Box* box_of(const Session& session, const rundb::SpanRow& span) {
  const TimelineWindow* picture = session.pieces.timeline.get();
  const TrackBoxes* track = picture == nullptr ? nullptr : picture->of_track(span.track_id);
  if (track == nullptr) return nullptr;
  const auto box = std::ranges::find(track->boxes, span.id, &Box::span_id);
  return box == track->boxes.end() ? nullptr : &*box;
}

// The middle of a span's box, where the rows are scrolled to now.
ImVec2 point_of(const Drive& d, const rundb::SpanRow& span) {
  const Session& session = d.session();
  const TimelineLayout layout = layout_of(*session.pieces.run, session.timeline.rows.folding());
  const TimelineRow* row = layout.row_of(span.track_id);
  const Box* box = box_of(session, span);
  IM_CHECK_RETV(row != nullptr && box != nullptr, ImVec2());
  const int lanes = session.pieces.timeline->of_track(span.track_id)->lane_count;
  const float lane = (static_cast<float>(box->lane) + 0.5F) / static_cast<float>(lanes);
  const TimeRange& view = session.timeline.view.range();
  const double share =
      static_cast<double>(span.ts + span.dur / 2 - view.begin) / static_cast<double>(view.width());
  const ImVec2 path = path_point(d, static_cast<float>(share));
  const float rows_top = path.y + px(kPathHeight / 2);
  const ImGuiTestItemInfo canvas = d.test->ItemInfo("//Timeline/##canvas");
  const ImVec2 point = {path.x,
                        rows_top + row->y + row->height * lane - session.timeline.rows.scroll()};
  IM_CHECK_RETV(point.y > rows_top && point.y < canvas.RectFull.Max.y, ImVec2());
  IM_CHECK_RETV(share > 0 && share < 1, ImVec2());
  return point;
}

bool is_in_view(const Drive& d, const rundb::SpanRow& row) {
  const TimeRange& view = d.session().timeline.view.range();
  return row.ts >= view.begin && row.ts + row.dur <= view.end;
}

// What a line of Details says behind its label; empty: there is no such line.
std::string said_of(const std::string& text, const std::string& label) {
  const std::size_t at = text.find("\n" + label + ": ");
  if (at == text.npos) return {};
  const std::size_t begin = at + label.size() + 3;
  return text.substr(begin, text.find('\n', begin) - begin);
}

// A view that stands behind another tab has no parts that are drawn.
bool has_table(const char* window) {
  return std::ranges::any_of(ImGui::GetCurrentContext()->Windows, [window](const auto* part) {
    return part->WasActive && std::string_view(part->Name).starts_with(std::string(window) + "/");
  });
}

// Something in a window of that name, or in a part of it, has this colour.
bool is_drawn(const char* window, ImU32 colour) {
  for (const ImGuiWindow* part : ImGui::GetCurrentContext()->Windows) {
    if (!part->WasActive || std::string_view(part->Name).find(window) != 0) continue;
    const auto& vertices = part->DrawList->VtxBuffer;
    if (std::any_of(vertices.begin(), vertices.end(),
                    [colour](const ImDrawVert& vertex) { return vertex.col == colour; }))
      return true;
  }
  return false;
}

}  // namespace

TEST_CASE("a span is chosen on the critical path, and its details are copied as text") {
  if (!can_run()) return;
  const std::string problem = drive(options_for(trained_run()), [](const Drive& d) {
    IM_CHECK(is_drawn_with_path(d));
    Session& session = d.session();
    IM_CHECK(!d.test->ItemExists("//Details/Copy (Ctrl+C)"));
    d.test->ItemClick("//Timeline/Fit step");
    IM_CHECK(is_drawn_with_path(d));
    click_at(d, path_point(d, 0.5F));
    IM_CHECK(session.timeline.chosen_span() != 0);
    IM_CHECK(session.pieces.paths->is_on_path(session.timeline.chosen_span()));
    IM_CHECK(d.comes_true([&] { return has_chosen(d) && session.pieces.rank != nullptr; }));
    d.test->Yield(3);
    d.test->ItemClick("//Details/Copy (Ctrl+C)");
    const std::string text = ImGui::GetClipboardText();
    const rundb::SpanRow row = session.pieces.chosen->row;
    IM_CHECK(text.starts_with(session.pieces.facts().string_of(row.name_id) + "\n"));
    IM_CHECK(text.find("span id: " + std::to_string(row.id)) != text.npos);
    const std::string step = said_of(text, "step");
    IM_CHECK(!step.empty() &&
             std::ranges::all_of(step, [](char c) { return c >= '0' && c <= '9'; }));
    const std::string duration = said_of(text, "duration");
    IM_CHECK(duration.ends_with(" s") || duration.ends_with(" ms") || duration.ends_with(" us"));
    IM_CHECK(said_of(text, "rank").find(" of ") != text.npos);
    const std::string path = said_of(text, "critical path");
    IM_CHECK(path.find(" of step ") != path.npos && path.find(", as ") != path.npos);
    IM_CHECK(text.find("emulated clock, 4 times slower than the platform") != text.npos);
    ImGui::SetClipboardText("");
    d.test->WindowFocus("//Timeline");
    d.test->KeyPress(ImGuiMod_Ctrl | ImGuiKey_C);
    IM_CHECK_STR_EQ(ImGui::GetClipboardText(), text.c_str());
    d.picture_with_all("details");
  });
  CHECK(problem == "");
}

TEST_CASE("what set a span off and what it set off is a click away, and comes into view") {
  if (!can_run()) return;
  const std::string problem = drive(options_for(trained_run()), [](const Drive& d) {
    IM_CHECK(is_drawn_with_path(d));
    Session& session = d.session();
    find_span(d, "update");
    const std::int64_t update = session.timeline.chosen_span();
    const SpanDetails details = details_of(session.pieces, *session.pieces.chosen);
    IM_CHECK(!details.causes.empty());
    const rundb::SpanRow cause = details.causes.front().row;
    // Somewhere else, so that the click has to bring it back.
    d.test->ItemClick("//Timeline/Fit run");
    d.test->ItemClick(("//Details/Set off by/span " + std::to_string(cause.id)).c_str());
    IM_CHECK_EQ(session.timeline.chosen_span(), cause.id);
    IM_CHECK(is_in_view(d, cause));
    // A span that is a five-hundredth of the view already is seen as it is.
    IM_CHECK_LE(session.timeline.view.range().width(), 500 * cause.dur + 1000);
    IM_CHECK(d.comes_true([&] { return has_chosen(d); }));
    d.test->Yield(3);
    d.test->ItemClick(("//Details/Set off/span " + std::to_string(update)).c_str());
    IM_CHECK_EQ(session.timeline.chosen_span(), update);
  });
  CHECK(problem == "");
}

TEST_CASE("a row that is scrolled away comes back with its span") {
  if (!can_run()) return;
  const std::string problem = drive(options_for(trained_run()), [](const Drive& d) {
    IM_CHECK(is_drawn_with_path(d));
    Session& session = d.session();
    find_span(d, "gradient_down");
    const SpanDetails details = details_of(session.pieces, *session.pieces.chosen);
    IM_CHECK(!details.causes.empty());
    const rundb::SpanRow cause = details.causes.front().row;
    IM_CHECK_STR_EQ(session.pieces.facts().track(cause.track_id)->group.c_str(), "host");
    // Over the names the wheel scrolls the rows: the host's go out at the top.
    const ImGuiTestItemInfo canvas = d.test->ItemInfo("//Timeline/##canvas");
    d.test->MouseMoveToPos({canvas.RectFull.Min.x + px(20), canvas.RectFull.GetCenter().y});
    d.test->MouseWheelY(-40);
    d.test->Yield(2);
    d.test->ItemClick(("//Details/Set off by/span " + std::to_string(cause.id)).c_str());
    IM_CHECK(d.comes_true([&] { return has_chosen(d); }));
    d.test->Yield(3);
    IM_CHECK(is_drawn_with_path(d));
    // Near, a neighbour is not within the mouse's slack.
    d.test->ItemClick("//Details/Zoom to it");
    IM_CHECK(d.comes_true([&] { return box_of(session, cause) != nullptr; }));
    d.test->Yield(3);
    IM_CHECK(is_drawn_with_path(d));
    // The search is closed first, then the choice, so that the click alone chooses it again.
    d.test->KeyPress(ImGuiKey_Escape, 2);
    IM_CHECK_EQ(session.timeline.chosen_span(), 0);
    IM_CHECK(d.comes_true([&] { return box_of(session, cause) != nullptr; }));
    click_at(d, point_of(d, cause));
    // More spans than lanes at a time share the last one, where any of them may lie on top.
    const TrackBoxes* track = session.pieces.timeline->of_track(cause.track_id);
    IM_CHECK(track != nullptr);
    const auto chosen =
        std::ranges::find(track->boxes, session.timeline.chosen_span(), &Box::span_id);
    IM_CHECK(chosen != track->boxes.end());
    const std::int64_t middle = cause.ts + cause.dur / 2;
    IM_CHECK(chosen->span_id == cause.id ||
             (chosen->lane == kLanesMax - 1 && chosen->ts <= middle && chosen->end_ts >= middle));
  });
  CHECK(problem == "");
}

TEST_CASE("a chosen span is marked in Statistics and Links and asked about in SQL") {
  if (!can_run()) return;
  const std::string problem = drive(options_for(trained_run()), [](const Drive& d) {
    IM_CHECK(is_drawn_with_path(d));
    Session& session = d.session();
    const ImU32 mark = with_alpha(look().colours.accent, 0.28F);
    IM_CHECK(!is_drawn("Statistics", mark));
    find_span(d, "state_read");
    d.test->WindowFocus("//Statistics");
    IM_CHECK(d.comes_true([&] { return is_drawn("Statistics", mark); }));
    d.test->WindowFocus("//Links");
    IM_CHECK(d.comes_true([&] { return is_drawn("Links", mark); }));
    const std::int64_t span_id = session.timeline.chosen_span();
    d.test->ItemClick("//Details/Ask in SQL");
    SqlConsole& console = session.pieces.feed->console();
    IM_CHECK(d.comes_true([&] { return console.answer() != nullptr && !console.is_working(); }));
    IM_CHECK_STR_EQ(console.answer()->problem.c_str(), "");
    const auto& rows = console.answer()->rows;
    const auto own = std::ranges::find(rows, std::to_string(span_id),
                                       [](const auto& row) { return row.front(); });
    IM_CHECK(own != rows.end());
    IM_CHECK_STR_EQ((*own)[1].c_str(), "state_read");
    // A row leads to its span, and Alt+Left back to where this one was looked at.
    session.sql.put("SELECT dur, id FROM span WHERE id > " + std::to_string(span_id) + " LIMIT 2");
    IM_CHECK(d.comes_true(
        [&] { return console.answer()->span_column == 1 && console.answer()->rows.size() == 2; }));
    const std::int64_t other = std::stoll(console.answer()->rows.back().back());
    d.test->SleepNoSkip(1.2F * static_cast<float>(ViewHistory::kRestSeconds), 1.0F / 30);
    d.test->ItemClick("//SQL/**/$$1/###span");
    IM_CHECK(d.comes_true([&] { return session.timeline.chosen_span() == other; }));
    for (const auto& [key, span] :
         {std::pair(ImGuiKey_LeftArrow, span_id), std::pair(ImGuiKey_RightArrow, other),
          std::pair(ImGuiKey_LeftArrow, span_id)}) {
      d.test->KeyPress(ImGuiMod_Alt | key);
      IM_CHECK(
          d.comes_true([&, wanted = span] { return session.timeline.chosen_span() == wanted; }));
    }
    // The same rows as a track: a click on one of them chooses its span, one on the label ends it.
    d.test->ItemClick("//SQL/###track");
    IM_CHECK(session.timeline.answer_track == console.answer());
    d.test->Yield(4);
    d.picture_with_all("sql track");
    const ImRect canvas = d.test->ItemInfo("//Timeline/##canvas").RectFull;
    const TimeRange view = session.timeline.view.range();
    const SqlPiece& piece = session.timeline.answer_track->pieces.back();
    IM_CHECK(piece.ts >= view.begin && piece.ts < view.end);
    const float share = static_cast<float>(piece.ts + piece.dur / 2 - view.begin) /
                        static_cast<float>(view.width());
    const float left = canvas.Min.x + px(kTrackLabelWidth);
    const float y = canvas.Min.y + ruler_height(session.pieces.facts()) + px(kAnswerHeight) / 2;
    d.test->MouseMoveToPos({left + share * (canvas.Max.x - left), y});
    d.test->MouseClick(0);
    IM_CHECK(d.comes_true([&] { return session.timeline.chosen_span() == other; }));
    d.test->MouseMoveToPos({canvas.Min.x + 10, y});
    d.test->MouseClick(0);
    IM_CHECK(d.comes_true([&] { return session.timeline.answer_track == nullptr; }));
    session.timeline.choose(span_id);
    // SQL asks for the keyboard when it comes to the front, which an early answer may precede.
    d.test->Yield(4);
    d.test->WindowFocus("//Timeline");
    d.test->KeyPress(ImGuiKey_Escape);
    IM_CHECK_STR_EQ(session.timeline.search.text().c_str(), "");
    IM_CHECK_EQ(session.timeline.chosen_span(), span_id);
    d.test->KeyPress(ImGuiKey_Escape);
    IM_CHECK_EQ(session.timeline.chosen_span(), 0);
    d.test->WindowFocus("//Links");
    IM_CHECK(d.comes_true([&] { return has_table("Links") && !is_drawn("Links", mark); }));
  });
  CHECK(problem == "");
}

TEST_CASE("the critical path that is drawn sums to the verdicts of the record") {
  if (!can_run()) return;
  const std::string problem = drive(options_for(trained_run()), [](const Drive& d) {
    IM_CHECK(is_drawn_with_path(d));
    d.test->ItemClick("//Timeline/Fit run");
    d.test->Yield(3);
    IM_CHECK(d.comes_true([&] {
      return d.session().pieces.paths->steps.size() == d.session().pieces.steps().size();
    }));
    const std::shared_ptr<const StepPaths> kept = d.session().pieces.paths;
    const StepPaths& paths = *kept;
    IM_CHECK_EQ(paths.steps.size(), d.session().pieces.steps().size());
    const auto reader = rundb::require_ok(rundb::Reader::open(trained_run()));
    const auto verdicts = rundb::require_ok(analyze::stored_verdicts(*reader, 0));
    IM_CHECK_EQ(verdicts.size(), paths.steps.size());
    for (const auto& path : paths.steps) {
      std::array<TimeNs, analyze::kCauseCount> on_path{};
      for (const analyze::PathPiece& piece : path->pieces)
        on_path[analyze::index_of(piece.cause)] += piece.dur;
      for (std::size_t c = 0; c < analyze::kCauseCount; ++c) {
        const double share_ns =
            verdicts.at(path->step)[c] * static_cast<double>(path->end_ts - path->ts);
        IM_CHECK_LT(std::abs(share_ns - static_cast<double>(on_path[c])), 1000.0);
      }
    }
    d.picture_with_all("critical path");
  });
  CHECK(problem == "");
}

TEST_CASE("a cause of the overview marks its spans of the critical path") {
  if (!can_run()) return;
  const std::string problem = drive(options_for(trained_run()), [](const Drive& d) {
    IM_CHECK(is_drawn_with_path(d));
    Session& session = d.session();
    // Before the first step nothing of a cause is in view: the step that has most of it comes.
    const rundb::StepRow first = session.pieces.steps().front();
    session.timeline.view.set({first.ts - 2'000'000, first.ts - 1'000'000});
    d.test->Yield(3);
    IM_CHECK(is_drawn_with_path(d));
    IM_CHECK(d.has_item("//Overview/##causes/forward, backward"));
    d.test->ItemClick("//Overview/##causes/forward, backward");
    IM_CHECK(session.timeline.marked_cause() == analyze::Cause::compute);
    IM_CHECK_GT(session.timeline.view.range().begin, first.ts);
    d.test->Yield(3);
    IM_CHECK(is_drawn_with_path(d));
    d.picture_with_all("marked cause");
    d.test->ItemClick("//Overview/##causes/forward, backward");
    IM_CHECK(!session.timeline.marked_cause());
    d.test->ItemClick("//Overview/##causes/forward, backward");
    d.test->WindowFocus("//Timeline");
    d.test->KeyPress(ImGuiKey_Escape);
    IM_CHECK(!session.timeline.marked_cause());
  });
  CHECK(problem == "");
}

TEST_CASE("a sentence about a step goes to that step") {
  if (!can_run()) return;
  const std::string database = run_with_slow_step();
  const std::string problem = drive(options_for(database), [](const Drive& d) {
    IM_CHECK(is_drawn_with_path(d));
    Session& session = d.session();
    IM_CHECK(d.comes_true([&] { return session.pieces.verdict != nullptr; }));
    const auto& findings = session.pieces.verdict->findings;
    const auto about = std::ranges::find(findings, 8, &analyze::Remark::step);
    IM_CHECK(about != findings.end());
    const auto before = std::count_if(findings.begin(), about,
                                      [](const analyze::Remark& f) { return f.step >= 0; });
    const std::string sentence = "//Overview/$$" + std::to_string(before) + "/about step 9";
    const rundb::StepRow& slow = session.pieces.steps()[8];
    // Predictions that come in meanwhile move the sentence.
    IM_CHECK(d.click_until(sentence.c_str(), [&] {
      const TimeRange& view = session.timeline.view.range();
      return view.begin <= slow.ts && view.end >= slow.ts + slow.dur &&
             view.width() < slow.dur * 5 / 4;
    }));
    IM_CHECK(is_drawn_with_path(d));
    IM_CHECK(d.comes_true([&] { return session.pieces.explanation != nullptr; }));
    d.picture_with_all("sentence");
    // A measured range explains the steps in it, Esc closes that, and a double click explains one.
    const auto is_explained = [&](std::int64_t first, std::int64_t last) {
      return d.comes_true([&] {
        const auto* of = session.pieces.explanation.get();
        return of != nullptr && of->steps == analyze::StepRange{first, last};
      });
    };
    session.timeline.explain_range({session.pieces.steps()[2].ts, session.pieces.steps()[5].ts});
    IM_CHECK(is_explained(2, 4));
    IM_CHECK(d.has_item("//Details/##explained/forward, backward"));
    d.picture_with_all("range explained");
    d.test->KeyPress(ImGuiKey_Escape);
    IM_CHECK(d.comes_true([&] { return !session.timeline.explained(); }));
    session.timeline.show_step(session.pieces.steps()[3]);
    IM_CHECK(is_explained(3, 3));
  });
  CHECK(problem == "");
}

TEST_CASE("a layout kept before there was a pane for details takes it in beside Statistics") {
  if (!can_run()) return;
  AppOptions options = options_for(trained_run());
  options.settings_path = test_path("older.ini");
  CHECK(drive(options, [](const Drive& d) { IM_CHECK(is_drawn_with_path(d)); }) == "");
  std::stringstream kept;
  kept << std::ifstream(options.settings_path).rdbuf();
  std::string older = kept.str();
  const std::size_t section = older.find("[Window][Details]\n");
  REQUIRE(section != std::string::npos);
  older.erase(section, older.find("\n\n", section) + 2 - section);
  REQUIRE(older.size() < kept.str().size());
  std::ofstream(options.settings_path) << older;
  const std::string problem = drive(options, [](const Drive& d) {
    IM_CHECK(is_drawn_with_path(d));
    d.test->Yield(4);
    const ImGuiDockNode* dock = ImGui::FindWindowByName("Statistics")->DockNode;
    IM_CHECK(dock != nullptr);
    IM_CHECK(ImGui::FindWindowByName("Details")->DockNode == dock);
    IM_CHECK(dock->VisibleWindow == ImGui::FindWindowByName("Statistics"));
  });
  CHECK(problem == "");
}

TEST_CASE("a rank says how many are shorter, and is not rounded up to all") {
  CHECK(rank_words({1, 1204, 1120, 84}, "state_read") ==
        "longer than 93\u2009% of 1\u2009204 state_read");
  CHECK(rank_words({1, 10'000, 9'998, 1}, "update") ==
        "longer than 99.9\u2009% of 10\u2009000 update");
  CHECK(rank_words({1, 12, 11, 0}, "update") == "the longest of 12 update");
  CHECK(rank_words({1, 12, 0, 11}, "update") == "the shortest of 12 update");
  CHECK(rank_words({1, 12, 0, 0}, "update") == "as long as all of 12 update");
  CHECK(rank_words({1, 1, 0, 0}, "sample") == "the only sample");
}

}  // namespace sluice::gui
