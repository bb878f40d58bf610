// What somebody wants to know or do who sees the window for the first time: each by mouse and
// keyboard alone, and in no more actions than a profiler's user would allow. An action is a click,
// a drag, a key chord, or a text typed with what ends it.

#include <fmt/format.h>
#include <imgui_internal.h>

#include <catch2/catch.hpp>
#include <fstream>

#include "gui/data/run_list.h"
#include "gui/data/span_lookup.h"
#include "gui/data/sql_console.h"
#include "gui/data/verdict.h"
#include "gui/views/path_track.h"
#include "gui/views/session.h"
#include "gui/views/span_details.h"
#include "gui/views/timeline_ruler.h"
#include "gui/widgets/look.h"
#include "profiler/analyze/step_explanation.h"
#include "tests/gui/app/virtual_display.h"
#include "tests/gui/app/window_fixture.h"

namespace sluice::gui {
namespace {

class Newcomer {
 public:
  explicit Newcomer(const Drive& d) : d_(d) {}

  void click(const char* item) {
    d_.test->ItemClick(item);
    took_action();
  }
  void click_at(ImVec2 place) {
    d_.test->MouseMoveToPos(place);
    d_.test->MouseClick(0);
    took_action();
  }
  void drag(ImVec2 from, ImVec2 by, ImGuiKey held) {
    d_.test->MouseMoveToPos(from);
    d_.test->KeyDown(held);
    d_.test->MouseDragWithDelta(by);
    d_.test->KeyUp(held);
    took_action();
  }
  void click_tab(const char* window) {
    const ImGuiWindow* of = ImGui::FindWindowByName(window);
    IM_CHECK(of != nullptr);
    click_at(of->DC.DockTabItemRect.GetCenter());
  }
  void drag_onto(const char* from, const char* to) {
    d_.test->ItemDragAndDrop(from, to);
    took_action();
  }
  void press(ImGuiKeyChord chord) {
    d_.test->KeyPress(chord);
    took_action();
  }
  // Where the keyboard is.
  void type(const char* text, ImGuiKeyChord end) {
    d_.test->KeyCharsReplace(text);
    d_.test->KeyPress(end);
    took_action();
  }
  void pick(const char* menu_item) {
    d_.test->MenuClick(menu_item);
    action_count_ += 2;  // the menu, and what is in it
    d_.test->Yield(3);
  }
  // The task is done, and it took so many.
  void done(const char* task, int goal) {
    fmt::print("{}: {} of at most {} actions\n", task, action_count_, goal);
    IM_CHECK_LE(action_count_, goal);
    action_count_ = 0;
  }

 private:
  void took_action() {
    action_count_ += 1;
    d_.test->Yield(3);
  }
  const Drive& d_;
  int action_count_ = 0;
};

ImVec2 point_of_canvas(const Drive& d, float x, float y) {
  const ImGuiTestItemInfo canvas = d.test->ItemInfo("//Timeline/##canvas");
  IM_CHECK_RETV(canvas.ID != 0, ImVec2());
  return {canvas.RectFull.Min.x + canvas.RectFull.GetWidth() * x,
          canvas.RectFull.Min.y + canvas.RectFull.GetHeight() * y};
}

bool has_chosen(const Drive& d, const char* name) {
  const RunPieces& pieces = d.session().pieces;
  return pieces.chosen != nullptr && pieces.chosen->row.id == d.session().timeline.chosen_span() &&
         pieces.facts().string_of(static_cast<std::int32_t>(pieces.chosen->row.name_id)) == name;
}

// A search goes on in another thread; a newcomer sees its count.
bool has_found(const Drive& d, const char* text) {
  return d.comes_true([&] {
    const Findings* found = d.session().pieces.found.get();
    return found != nullptr && found->text == text && !found->spans.empty();
  });
}

}  // namespace

TEST_CASE("why a step was slow is found in two actions") {
  if (!can_run()) return;
  const std::string problem = drive(options_for(run_with_slow_step()), [](const Drive& d) {
    IM_CHECK(d.settles());
    Newcomer newcomer(d);
    const auto& findings = d.session().pieces.verdict->findings;
    const auto about = std::ranges::find(findings, 8, &analyze::Remark::step);
    IM_CHECK(about != findings.end());
    const auto before = std::count_if(findings.begin(), about,
                                      [](const analyze::Remark& f) { return f.step >= 0; });
    newcomer.click(fmt::format("//Overview/$${}/about step 9", before).c_str());
    // Details says it; the sentence leads to the operation.
    const auto explanation = [&] { return d.session().pieces.explanation.get(); };
    IM_CHECK(
        d.comes_true([&] { return explanation() != nullptr && explanation()->steps.first == 8; }));
    IM_CHECK(explanation()->is_beyond_noise);
    IM_CHECK(explanation()->first_reason() != nullptr);
    IM_CHECK_STR_EQ(explanation()->first_reason()->operation.c_str(), "backward");
    IM_CHECK(d.settles());
    newcomer.click("//Details/$$0/reason");
    IM_CHECK(d.comes_true([&] { return has_chosen(d, "backward"); }));
    IM_CHECK_EQ(d.session().pieces.chosen->row.dur, 400'000'000);
    newcomer.done("find why a step was slow", 2);
  });
  CHECK(problem == "");
}

TEST_CASE("a finished run is asked, searched, summed, exported and begun anew") {
  if (!can_run()) return;
  AppOptions options = options_for(trained_run());
  const std::string problem = drive(options, [](const Drive& d) {
    IM_CHECK(d.settles());
    Session& session = d.session();
    Newcomer newcomer(d);
    newcomer.press(ImGuiMod_Ctrl | ImGuiKey_F);
    newcomer.type("gradient_read", ImGuiKey_Enter);
    IM_CHECK(d.comes_true([&] { return has_chosen(d, "gradient_read"); }));
    const auto in_details = [&] { return details_of(session.pieces, *session.pieces.chosen); };
    IM_CHECK(d.comes_true([&] { return !in_details().causes.empty(); }, std::chrono::seconds(20)));
    const SpanDetails details = in_details();
    IM_CHECK(std::ranges::count(details.lines, std::string("waited before"), &DetailLine::label) ==
             1);
    newcomer.done("see what a gradient waited for", 3);

    newcomer.press(ImGuiMod_Ctrl | ImGuiKey_F);
    newcomer.type("commit", ImGuiKey_Enter);
    IM_CHECK(has_found(d, "commit"));
    IM_CHECK_GE(session.pieces.found->spans.size(), 8U);
    IM_CHECK(d.comes_true([&] { return session.timeline.search.found_index().has_value(); }));
    newcomer.done("find all commits", 2);
    d.test->KeyPress(ImGuiKey_Escape);
    d.test->KeyPress(ImGuiKey_Escape);

    newcomer.drag(point_of_canvas(d, 0.4F, 0.6F), {200, 0}, ImGuiMod_Shift);
    IM_CHECK(session.timeline.measure.range().has_value());
    IM_CHECK(d.has_item("//Measured range/Dismiss"));
    newcomer.done("sum the bytes of a range", 1);
    d.test->ItemClick("//Measured range/Dismiss");

    d.session().foreground.bring("Knobs");
    d.test->Yield(4);
    const auto pipeline_words = [&] {
      const auto& knobs = session.control.choice.knobs(session.pieces.facts());
      const auto pipeline = std::ranges::find(knobs, "pipeline", &control::Knob::key);
      return pipeline == knobs.end() ? 0 : pipeline->words.size();
    };
    const auto recorded = [&] {
      return session.control.consultation.advisor()->advice(Question::knobs);
    };
    IM_CHECK(d.comes_true([&] { return recorded() != nullptr; }));
    IM_CHECK_STR_EQ(recorded()->problem.c_str(), "");
    d.test->Yield();
    IM_CHECK_EQ(pipeline_words(), 3U);
    d.test->SetRef(d.test->WindowInfo("//Knobs/##knobs").ID);
    newcomer.click("pipeline/serial");
    newcomer.click("//Knobs/What if");
    IM_CHECK(d.comes_true(
        [&] { return session.control.consultation.advice(Question::what_if) != nullptr; }));
    IM_CHECK_STR_EQ(session.control.consultation.advice(Question::what_if)->problem.c_str(), "");
    newcomer.done("predict another pipeline", 2);

    newcomer.click_tab("SQL");
    newcomer.type("SELECT count(*) FROM step", ImGuiMod_Ctrl | ImGuiKey_Enter);
    const auto answer = [&] { return session.pieces.feed->console().answer(); };
    IM_CHECK(d.comes_true([&] { return answer() != nullptr; }));
    IM_CHECK_STR_EQ(answer()->problem.c_str(), "");
    newcomer.done("ask a question in SQL", 2);

    // The view is on the last steps, as it is where a run was followed.
    newcomer.pick("//##MainMenuBar/Run/Export a trace for Perfetto\u2026");
    newcomer.click("//Export/Export");
    IM_CHECK(d.comes_true([&] { return d.test->ItemExists("//Export/Close"); }));
    newcomer.done("export a trace of the steps in view", 3);
    d.test->ItemClick("//Export/Close");
  });
  CHECK(problem == "");
}

TEST_CASE("an earlier run is opened, and one like it is begun") {
  if (!can_run()) return;
  AppOptions options = options_for("");
  options.settings_path = test_path("newcomer.ini");
  std::ofstream(options.settings_path) << "[Sluice][Window]\nRecent=" << trained_run() << "\n";
  options.sluice = test_path("not_training");
  std::ofstream(options.sluice) << "#!/bin/sh\ncase $1 in train) echo \"$@\" > '" + options.sluice +
                                       ".trained'; exit 1;; esac\nexec '" + sluice_program() +
                                       "' \"$@\"\n";
  fs::permissions(options.sluice, fs::perms::owner_all);
  const std::string problem = drive(options, [](const Drive& d) {
    Newcomer newcomer(d);
    newcomer.press(ImGuiMod_Ctrl | ImGuiKey_O);
    const std::vector<RunSummary> runs = list_runs("out", {trained_run()});
    const auto row = std::ranges::find(runs, trained_run(), &RunSummary::path);
    IM_CHECK(row != runs.end());
    const std::string item = fmt::format("//$FOCUSED/##runs/###run {}", row - runs.begin());
    IM_CHECK(
        d.comes_true([&] { return d.test->ItemExists(item.c_str()); }, std::chrono::seconds(20)));
    newcomer.click(item.c_str());
    IM_CHECK(d.comes_true([&] { return d.session().pieces.has_facts(); }));
    newcomer.done("open yesterday's run", 2);
    IM_CHECK(d.settles());
    IM_CHECK(d.comes_true([&] { return d.session().control.choice.is_for_new_run(); }));
    newcomer.click("//Knobs/###new run");
    IM_CHECK(d.comes_true(
        [&] { return d.session().pieces.feed->path().find("done-") != std::string::npos; }));
    newcomer.done("make a new run from a finished one's settings", 2);
  });
  CHECK(problem == "");
}

TEST_CASE("a live run's share is moved, its effect read, and the change taken back") {
  if (!can_run()) return;
  const std::string problem = drive_live("newcomer", options_for(""), 4000, [](const Drive& d) {
    RunControl& control = d.session().control;
    Newcomer newcomer(d);
    IM_CHECK(d.has_item("//Devices/##amount"));
    const std::size_t before = control.effects().size();
    newcomer.drag_onto("//Devices/##csd0", "//Devices/##csd1");
    newcomer.click("//Knobs/###apply");
    IM_CHECK(d.comes_true([&] { return value_in_force(d, "device_map") == "12,14,12,12"; }));
    newcomer.done("move a tenth of csd0 to csd1", 2);
    IM_CHECK(d.comes_true([&] {
      return control.effects().size() == before + 1 && control.effects().back().is_settled;
    }));
    IM_CHECK(d.test->WindowInfo("//Knobs/##effects").Window != nullptr);  // it came up by itself
    newcomer.done("compare before and after a change", 2);
    newcomer.press(ImGuiMod_Ctrl | ImGuiKey_Z);
    IM_CHECK(d.comes_true([&] { return value_in_force(d, "device_map") == "even"; }));
    newcomer.done("take a change back", 1);
  });
  CHECK(problem == "");
}

}  // namespace sluice::gui
