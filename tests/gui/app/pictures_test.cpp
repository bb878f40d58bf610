// Pictures of every view, of a live run whose knobs were turned, in both themes, at two scales and
// on three screens: together, each alone, and what is around them. They are kept in
// build/PRESET/gui_pictures, named by theme, scale, screen and view.

#include <GLFW/glfw3.h>
#include <fmt/format.h>
#include <imgui_internal.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <iterator>

#include "gui/data/span_lookup.h"
#include "gui/data/sql_console.h"
#include "gui/data/step_paths.h"
#include "gui/views/session.h"
#include "gui/widgets/look.h"
#include "tests/gui/app/virtual_display.h"
#include "tests/gui/app/window_fixture.h"
#include "tests/test_all.h"

namespace sluice::gui {
namespace {

struct Screen {
  int width;  // in pixels, whatever the scale
  int height;
  std::string name() const { return fmt::format("{}x{}", width, height); }
};
constexpr Screen kScreens[] = {{3840, 2160}, {1920, 1080}, {1366, 768}};

void resize(const Drive& d, const Screen& screen) {
  // Scripts run in a thread of their own, which has no current context.
  auto* window = static_cast<GLFWwindow*>(ImGui::GetMainViewport()->PlatformHandle);
  glfwSetWindowSize(window, screen.width, screen.height);
  IM_CHECK(d.comes_true(
      [&] { return ImGui::GetIO().DisplaySize.x == static_cast<float>(screen.width); }));
  d.test->Yield(4);
}

void save_in_theme(const Drive& d, Theme theme, const std::string& name, int scale) {
  d.shell->set_theme(theme);
  const char* word = theme == Theme::dark ? "dark" : "light";
  d.save_picture(fmt::format("{}/{} {} {}.png", picture_folder(), word, scale, name));
}

// What lies behind a picture is the same in both themes.
void save_in_both_themes(const Drive& d, const std::string& name, int scale) {
  for (const Theme theme : {Theme::dark, Theme::light}) save_in_theme(d, theme, name, scale);
}

// A view alone is seen at either scale, dark at the one and light at the other. When all is tested,
// with each pair of theme, scale and screen: at either scale the themes take turns from screen to
// screen, beginning with the other one.
std::vector<Screen> screens_alone() {
  if (is_testing_all()) return {std::begin(kScreens), std::end(kScreens)};
  return {kScreens[1]};
}

Theme theme_of(const Screen& screen, int scale) {
  const auto place = std::ranges::find(kScreens, screen.width, &Screen::width) - kScreens;
  return (place + scale) % 2 == 0 ? Theme::dark : Theme::light;
}

// Something to see in each view: changes with their effects, and a prediction.
void turn_some_knobs(const Drive& d, const std::vector<std::string>& settings) {
  Session& session = d.session();
  RunControl& control = session.control;
  IM_CHECK(d.comes_true(
      [&] { return session.pieces.has_facts() && session.pieces.steps().size() > 8; }));
  IM_CHECK(d.comes_true([&] { return control.choice.can_turn(); }));
  for (const std::string& setting : settings) {
    const std::size_t before = control.effects().size();
    control.set_now({setting});
    IM_CHECK(d.comes_true([&] {
      return control.effects().size() == before + 1 && control.effects().back().after_count >= 3;
    }));
  }
  IM_CHECK(d.comes_true([&] { return control.effects().back().is_settled; }));
  // On a busy machine a prediction may take long; the pictures are then without it.
  d.comes_true([&] { return control.consultation.advice(Question::suggest) != nullptr; },
               std::chrono::seconds(20));
}

// A span of the critical path, so that its details are in the pictures.
void choose_span(const Drive& d) {
  Session& session = d.session();
  IM_CHECK(d.comes_true(
      [&] { return session.pieces.paths != nullptr && !session.pieces.paths->spans.empty(); }));
  session.timeline.choose(session.pieces.paths->spans.back().span_id);
  IM_CHECK(d.comes_true([&] { return session.pieces.chosen && session.pieces.rank; }));
}

void choose_some(const Drive& d) {
  RunControl& control = d.session().control;
  for (const auto& [key, value] : {std::pair("buffers", "5"), std::pair("density", "0.05"),
                                   std::pair("device_map", "8,18,12,12")}) {
    const control::Knob* knob = control.choice.state()->knob(key);
    IM_CHECK(knob != nullptr);
    control.choice.choose(*knob, value);
  }
}

// In the middle of the window; nothing else is open.
void show_alone(const Drive& d, const std::string& title) {
  for (const std::unique_ptr<View>& view : d.shell->views()) view->is_open = view->title() == title;
  const ImGuiDockNode* timeline = ImGui::FindWindowByName("Timeline")->DockNode;
  static ImGuiID middle = 0;
  if (timeline != nullptr) middle = timeline->ID;
  ImGui::DockBuilderDockWindow(title.c_str(), middle);
  d.test->Yield(4);
}

void fill(const Drive& d, const std::string& title) {
  if (title == "SQL") {
    d.test->ItemClick("//SQL/Run");
    IM_CHECK(d.comes_true([&] { return d.session().pieces.feed->console().answer() != nullptr; }));
  } else if (title == "Compare") {
    d.test->ItemInputValue("//Compare/##other", trained_run().c_str());
    IM_CHECK(d.comes_true([&] {
      return d.test->WindowInfo("//Compare/##pair", ImGuiTestOpFlags_NoError).Window != nullptr;
    }));
  }
}

void picture_surroundings(const Drive& d, int scale) {
  d.test->KeyPress(ImGuiMod_Ctrl | ImGuiKey_P);
  save_in_both_themes(d, "palette", scale);
  d.test->KeyPress(ImGuiKey_Escape);
  d.test->WindowFocus("//Timeline");
  d.test->KeyPress(ImGuiMod_Shift | ImGuiKey_Slash);
  save_in_both_themes(d, "shortcuts", scale);
  d.test->WindowClose("//Shortcuts");
  show_alone(d, "Knobs");
  d.test->WindowClose("//Knobs");
  save_in_both_themes(d, "all closed", scale);
  d.shell->open_run(text_file());
  IM_CHECK(d.comes_true(
      [&] { return d.session().pieces.run && !d.session().pieces.run->problem.empty(); }));
  save_in_both_themes(d, "error", scale);
  d.shell->close_run();
  save_in_both_themes(d, "start page", scale);
}

// One run for both scales, turned to something else in each. Its steps take long by the emulated
// clock: so the processors are free for the window.
void picture_all(int scale, const std::vector<std::string>& settings) {
  AppOptions options = options_for(test_path("pictures") + "/run.db");
  options.scale = scale;
  const std::string problem = drive(options, [&](const Drive& d) {
    turn_some_knobs(d, settings);
    choose_span(d);
    for (const Screen& screen : kScreens) {
      resize(d, screen);
      save_in_both_themes(d, screen.name() + " all", scale);
    }
    choose_some(d);
    save_in_both_themes(d, kScreens[2].name() + " all, pending", scale);
    for (const std::unique_ptr<View>& view : d.shell->views()) {
      const std::string title = view->title();
      show_alone(d, title);
      fill(d, title);
      for (const Screen& screen : screens_alone()) {
        resize(d, screen);
        show_alone(d, title);  // a small window has arranged its views anew
        save_in_theme(d, theme_of(screen, scale), screen.name() + " view " + title, scale);
      }
    }
    show_alone(d, "Timeline");
    picture_surroundings(d, scale);
  });
  CHECK(problem == "");
}

}  // namespace

TEST_CASE("every view is drawn in both themes and at two scales") {
  if (!can_run()) return;
  trained_run();
  ChildProcess training(train_command("pictures", 100'000) + " --set time_scale=12");
  picture_all(1, {"queue_depth=16", "buffers=6"});
  picture_all(2, {"prefetch=false", "buffers=3"});
}

}  // namespace sluice::gui
