// What is around the views: opening, commands, start page, settings that are kept.

#include <GLFW/glfw3.h>
#include <fmt/format.h>
#include <imgui_internal.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "gui/data/live_runs.h"
#include "gui/data/run_list.h"
#include "gui/data/sql_console.h"
#include "gui/views/session.h"
#include "gui/widgets/look.h"
#include "tests/gui/app/virtual_display.h"
#include "tests/gui/app/window_fixture.h"

namespace sluice::gui {

TEST_CASE("a file dropped onto the window is opened") {
  if (!can_run()) return;
  const std::string database = trained_run();
  const std::string problem = drive(options_for(""), [&database](const Drive& d) {
    IM_CHECK(d.session().pieces.feed == nullptr);
    // GLFW's own callback, as the window system would call it.
    auto* window = static_cast<GLFWwindow*>(ImGui::GetMainViewport()->PlatformHandle);
    const GLFWdropfun dropped = glfwSetDropCallback(window, nullptr);
    glfwSetDropCallback(window, dropped);
    IM_CHECK(dropped != nullptr);
    const char* paths[] = {database.c_str()};
    dropped(window, 1, paths);
    IM_CHECK(d.comes_true([&] { return d.session().pieces.has_facts(); }));
    IM_CHECK_STR_EQ(d.session().pieces.feed->path().c_str(), database.c_str());
  });
  CHECK(problem == "");
}

TEST_CASE("a small window has tabs where a large one has panes, until somebody moves a view") {
  if (!can_run()) return;
  AppOptions options = options_for(trained_run());
  options.scale = 2;
  options.window.width = 1366;
  options.window.height = 768;
  const std::string problem = drive(options, [](const Drive& d) {
    IM_CHECK(d.settles());
    const auto dock = [](const char* view) { return ImGui::FindWindowByName(view)->DockNode; };
    const auto resize = [&d](int width, int height) {
      auto* window = static_cast<GLFWwindow*>(ImGui::GetMainViewport()->PlatformHandle);
      glfwSetWindowSize(window, width, height);
      IM_CHECK(d.comes_true(
          [width] { return ImGui::GetIO().DisplaySize.x == static_cast<float>(width); }));
      d.test->Yield(8);
    };
    d.test->Yield(8);
    IM_CHECK(dock("Knobs") == dock("Overview"));
    IM_CHECK(dock("Statistics") == dock("Timeline"));
    IM_CHECK(dock("Timeline") != dock("Overview"));
    IM_CHECK(dock("Timeline")->VisibleWindow == ImGui::FindWindowByName("Timeline"));
    const auto steps = std::ranges::find_if(
        d.shell->views(), [](const auto& view) { return view->title() == std::string("Steps"); });
    (*steps)->is_open = false;
    d.test->Yield(2);
    resize(3840, 2160);
    IM_CHECK(dock("Knobs") != dock("Overview"));
    IM_CHECK(dock("Statistics") != dock("Timeline"));
    IM_CHECK(!(*steps)->is_open);  // what was closed stays closed
    d.test->DockInto("Links", "Overview");
    d.test->Yield(4);
    IM_CHECK(dock("Links") == dock("Overview"));
    resize(1366, 768);
    IM_CHECK(dock("Links") == dock("Overview"));
    IM_CHECK(dock("Knobs") != dock("Overview"));
  });
  CHECK(problem == "");
}

TEST_CASE("layout, theme and recent runs are there at the next start") {
  if (!can_run()) return;
  AppOptions options = options_for(trained_run());
  options.settings_path = test_path("gui.ini");
  float width = 0;
  const std::string first = drive(options, [&width](const Drive& d) {
    IM_CHECK(d.settles());
    d.test->WindowClose("//Links");
    d.test->KeyPress(ImGuiMod_Ctrl | ImGuiKey_T);
    IM_CHECK(d.shell->wanted_theme() == Theme::light);
    // The border between the timeline and the knobs, moved by a person.
    const ImRect knobs = ImGui::FindWindowByName("Knobs")->DockNode->Rect();
    d.test->MouseMoveToPos({knobs.Min.x - 2, knobs.GetCenter().y});
    d.test->MouseDragWithDelta({-120, 0});
    d.test->Yield(3);
    width = ImGui::FindWindowByName("Knobs")->DockNode->Size.x;
    IM_CHECK_GT(width, knobs.GetWidth() + 60);
    d.session().foreground.bring("SQL");
    d.test->Yield(4);
  });
  CHECK(first == "");
  std::stringstream kept;
  kept << std::ifstream(options.settings_path).rdbuf();
  CHECK(kept.str().find("Recent=" + trained_run() + "\n") != std::string::npos);
  const std::string second = drive(options, [&width](const Drive& d) {
    IM_CHECK(d.shell->wanted_theme() == Theme::light);
    IM_CHECK(d.settles());
    IM_CHECK_LT(std::abs(ImGui::FindWindowByName("Knobs")->DockNode->Size.x - width), 2.0F);
    const auto& views = d.shell->views();
    const auto links = std::ranges::find_if(
        views, [](const auto& view) { return std::string(view->title()) == "Links"; });
    IM_CHECK(!(*links)->is_open);
    // The tab that was in front is there again.
    IM_CHECK(!d.test->GetWindowByRef("SQL")->Hidden);
    IM_CHECK(d.test->GetWindowByRef("Statistics")->Hidden);
  });
  CHECK(second == "");
}

TEST_CASE("the start page tells runs that are gone from those that are there") {
  if (!can_run()) return;
  AppOptions options = options_for("");
  options.settings_path = test_path("known.ini");
  std::ofstream(options.settings_path)
      << "[Sluice][Window]\nRecent=" << trained_run() << "\nRecent=/no/such/run.db\n";
  const std::string problem = drive(options, [](const Drive& d) {
    IM_CHECK(d.settles());
    d.test->Yield(3);
    d.test->SetRef("Start");
    const ImGuiTestItemInfo gone = d.test->ItemInfo("recent/\\/no\\/such\\/run.db");
    IM_CHECK((gone.ItemFlags & ImGuiItemFlags_Disabled) != 0);
    std::string there = "recent/" + trained_run();
    for (std::size_t at = there.find('/', 7); at != there.npos; at = there.find('/', at + 2))
      there.insert(at, "\\");
    d.test->ItemClick(there.c_str());
    IM_CHECK(d.comes_true([&] { return d.session().pieces.has_facts(); }));
  });
  CHECK(problem == "");
}

TEST_CASE("opening lists the runs there are, and a path is completed") {
  if (!can_run()) return;
  AppOptions options = options_for("");
  options.settings_path = test_path("listed.ini");
  std::ofstream(options.settings_path)
      << "[Sluice][Window]\nRecent=" << trained_run() << "\nRecent=/no/such/run.db\n";
  const std::string problem = drive(options, [](const Drive& d) {
    d.test->KeyPress(ImGuiMod_Ctrl | ImGuiKey_O);
    d.test->Yield(3);
    const std::string begun = trained_run().substr(0, trained_run().size() - 4);
    d.test->ItemInput("**/##path");
    d.test->KeyCharsReplace(begun.c_str());
    d.test->SleepNoSkip(2.0F, 0.1F);
    d.test->KeyPress(ImGuiKey_Tab);
    d.test->Yield(3);
    d.picture_with_all("open");
    d.test->KeyPress(ImGuiKey_Enter);
    IM_CHECK(d.comes_true([&] { return d.session().pieces.has_facts(); }));
    IM_CHECK_STR_EQ(d.session().pieces.feed->path().c_str(), trained_run().c_str());
    d.test->KeyPress(ImGuiMod_Ctrl | ImGuiKey_W);
    d.test->Yield(3);
    // As the box itself lists them.
    const std::vector<RunSummary> runs = list_runs("out", {trained_run()});
    const auto row = std::ranges::find(runs, trained_run(), &RunSummary::path);
    IM_CHECK(row != runs.end());
    IM_CHECK_EQ(row->step_count, 8);
    d.test->KeyPress(ImGuiMod_Ctrl | ImGuiKey_O);
    const std::string item = fmt::format("//$FOCUSED/##runs/###run {}", row - runs.begin());
    IM_CHECK(d.comes_true([&] { return d.test->ItemExists(item.c_str()); }));
    d.test->ItemClick(item.c_str());
    IM_CHECK(d.comes_true([&] { return d.session().pieces.has_facts(); }));
    IM_CHECK_STR_EQ(d.session().pieces.feed->path().c_str(), trained_run().c_str());
  });
  CHECK(problem == "");
}

TEST_CASE("the first window is no larger than the screen, and shows a whole device") {
  if (!can_run()) return;
  std::string why;
  const auto small = VirtualDisplay::start(why, true, "1366x768");
  REQUIRE(small != nullptr);
  AppOptions options = options_for(trained_run());
  options.window.width = options.window.height = 0;
  const std::string problem = drive(options, [](const Drive& d) {
    IM_CHECK(d.settles());
    const ImVec2 size = ImGui::GetMainViewport()->Size;
    IM_CHECK_LE(size.x, 1366.0F);
    IM_CHECK_LE(size.y, 768.0F);
    const ImGuiWindow* devices = ImGui::FindWindowByName("Devices");
    const ImGuiTestItemInfo first = d.test->ItemInfo("//Devices/##csd0");
    IM_CHECK_LE(first.RectFull.Max.y, devices->InnerRect.Max.y);
    d.picture_with_all("first window 1366x768");
  });
  CHECK(problem == "");
}

TEST_CASE("a run begun on the start page trains, and goes on without the window") {
  if (!can_run()) return;
  AppOptions options = options_for("");
  // Stands for `sluice train RUN --set output=FOLDER`, with a text and steps that are here.
  options.sluice = test_path("beginning");
  // It is meant to outlive what began it, but not these tests, however they end.
  std::ofstream(options.sluice) << "#!/bin/sh\nfor last; do :; done\n"
                                << "( while kill -0 $$; do kill -0 " << ::getpid()
                                << " || kill -KILL $$; sleep 1; done ) 2>/dev/null &\nexec "
                                << train_command("unused", 4000) << " --set $last\n";
  fs::permissions(options.sluice, fs::perms::owner_all);
  const fs::path before = fs::current_path();
  fs::create_directories(test_path("checkout"));
  fs::current_path(test_path("checkout"));
  std::string database;
  const std::string problem = drive(options, [&database](const Drive& d) {
    d.test->SetRef("Start");
    IM_CHECK(d.comes_true([&] { return d.test->ItemExists("tiny/Begin"); }));
    d.test->ItemClick("tiny/Begin");
    IM_CHECK(d.comes_true([&] { return d.session().pieces.feed != nullptr; }));
    database = d.session().pieces.feed->path();
    IM_CHECK(d.comes_true([&] { return d.session().control.choice.can_turn(); }));
    IM_CHECK(d.comes_true(
        [&] { return d.session().pieces.has_facts() && !d.session().pieces.steps().empty(); }));
  });
  fs::current_path(before);
  CHECK(problem == "");
  REQUIRE(database == test_path("checkout") + "/out/tiny/run.db");
  CHECK(is_being_recorded(database));
  CHECK(ChildProcess(sluice_program() + " stop " + database).wait() == 0);
  const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (is_being_recorded(database) && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK_FALSE(is_being_recorded(database));
}

TEST_CASE("commands: palette, theme, sheet, console, closing and opening") {
  if (!can_run()) return;
  const std::string database = trained_run();
  const std::string problem = drive(options_for(""), [&database](const Drive& d) {
    d.picture_with_all("start page");
    d.test->KeyPress(ImGuiMod_Ctrl | ImGuiKey_O);
    d.test->Yield(3);
    d.test->ItemInputValue("**/##path", database.c_str());
    IM_CHECK(d.settles());
    IM_CHECK(d.session().pieces.has_facts());
    d.test->KeyPress(ImGuiMod_Ctrl | ImGuiKey_P);
    d.test->Yield(3);
    d.test->KeyChars("light");
    d.picture_with_all("palette");
    d.test->KeyPress(ImGuiKey_Enter);
    d.test->Yield(3);
    IM_CHECK(d.shell->wanted_theme() == Theme::light);
    d.test->WindowFocus("//Timeline");
    d.test->KeyPress(ImGuiMod_Shift | ImGuiKey_Slash);
    d.picture_with_all("shortcuts");
    d.test->WindowClose("//Shortcuts");
    d.session().foreground.bring("SQL");
    d.test->Yield(3);
    d.test->ItemClick("//SQL/Run");
    IM_CHECK(d.comes_true([&] {
      const auto answer = d.session().pieces.feed->console().answer();
      return answer != nullptr && answer->problem.empty() && !answer->rows.empty();
    }));
    d.test->KeyPress(ImGuiMod_Ctrl | ImGuiKey_W);
    d.test->Yield(2);
    IM_CHECK(d.session().pieces.feed == nullptr);
  });
  CHECK(problem == "");
}

namespace {
constexpr const char* kExportTrace = "//##MainMenuBar/Run/Export a trace for Perfetto\u2026";
constexpr const char* kExportTables = "//##MainMenuBar/Run/Export the tables as CSV\u2026";
}  // namespace

TEST_CASE("what is measured, seen, or all of a run can be exported", "[long]") {
  if (!can_run()) return;
  const std::string database = trained_run();
  const std::filesystem::path folder = std::filesystem::path(database).parent_path();
  const std::string problem = drive(options_for(database), [&folder](const Drive& d) {
    IM_CHECK(d.settles());
    const std::vector<rundb::StepRow>& steps = d.session().pieces.steps();
    IM_CHECK(steps.size() > 5);
    const auto range_of = [&steps](std::size_t first, std::size_t last) {
      return TimeRange{steps[first].ts + 1, steps[last].ts + steps[last].dur - 1};
    };
    d.session().timeline.view.set(range_of(1, 4));
    d.session().timeline.measure.set(range_of(2, 3));
    d.test->Yield(2);
    // The menu, the command, and the button: the narrowest range is chosen already.
    d.test->MenuClick(kExportTrace);
    IM_CHECK(
        d.comes_true([&] { return d.test->ItemExists("//Export/Measured range: steps 3 to 4"); }));
    IM_CHECK(d.test->ItemExists("//Export/Visible range: steps 2 to 5"));
    d.picture_with_all("export_choices");
    d.test->ItemClick("//Export/Export");
    IM_CHECK(d.comes_true([&] { return d.test->ItemExists("//Export/Close"); }));
    d.picture_with_all("exported_range");
    IM_CHECK(std::filesystem::exists(folder / "run-steps-3-4.trace.json.gz"));
    d.test->ItemClick("//Export/Close");
    d.test->MenuClick(kExportTables);
    d.test->ItemClick("//Export/Visible range: steps 2 to 5");
    d.test->ItemClick("//Export/Export");
    IM_CHECK(d.comes_true([&] { return d.test->ItemExists("//Export/Close"); }));
    IM_CHECK(std::filesystem::exists(folder / "run-steps-2-5-tables" / "span.csv"));
    d.test->ItemClick("//Export/Close");
    d.test->MenuClick(kExportTables);
    d.test->ItemClick("//Export/Cancel");
    d.test->Yield(2);
    IM_CHECK(!d.test->ItemExists("//Export/Export"));
  });
  CHECK(problem == "");
}

TEST_CASE("a run is exported: a page, a trace, tables", "[long]") {
  if (!can_run()) return;
  const std::string database = trained_run();
  const std::filesystem::path folder = std::filesystem::path(database).parent_path();
  const std::string problem = drive(options_for(database), [&folder](const Drive& d) {
    IM_CHECK(d.settles());
    const auto is_exported = [&d](const char* command, const std::filesystem::path& path) {
      d.test->MenuClick(command);
      if (d.test->ItemExists("//Export/Export")) d.test->ItemClick("//Export/Export");
      IM_CHECK(d.comes_true([&] { return d.test->ItemExists("//Export/Close"); }));
      d.picture_with_all("exported");
      d.test->ItemClick("//Export/Copy the path");
      IM_CHECK(path.string() == ImGui::GetClipboardText());
      IM_CHECK(std::filesystem::exists(path));
      d.test->ItemClick("//Export/Close");
    };
    is_exported("//##MainMenuBar/Run/Save a report page", folder / "run.html");
    is_exported("//##MainMenuBar/Run/Save a report page", folder / "run-2.html");
    // Where all of the run is seen, that is all there is to choose.
    d.session().timeline.view.show_all();
    d.test->Yield(2);
    is_exported(kExportTrace, folder / "run.trace.json.gz");
    is_exported(kExportTables, folder / "run-tables");
  });
  CHECK(problem == "");
}

TEST_CASE("every view can be brought forward") {
  if (!can_run()) return;
  const std::string problem = drive(options_for(trained_run()), [](const Drive& d) {
    IM_CHECK(d.settles());
    for (const std::unique_ptr<View>& view : d.shell->views()) {
      d.session().foreground.bring(view->title());
      d.test->Yield(3);
      const ImGuiWindow* window = d.test->GetWindowByRef(view->title());
      IM_CHECK(window != nullptr && !window->Hidden);
    }
  });
  CHECK(problem == "");
}

}  // namespace sluice::gui
