// Pictures of every view, of a live run whose knobs were turned, in both themes and at two scales:
// together, each alone, and what is around them. They are kept in build/PRESET/gui_pictures.

#include <GLFW/glfw3.h>
#include <fmt/format.h>
#include <imgui_internal.h>

#include <catch2/catch.hpp>

#include "tests/gui/app/virtual_display.h"
#include "tests/gui/app/window_fixture.h"

namespace sluice::gui {
namespace {

void resize(const Drive& d, float width, float height, int scale) {
  // Scripts run in a thread of their own, which has no current context.
  auto* window = static_cast<GLFWwindow*>(ImGui::GetMainViewport()->PlatformHandle);
  glfwSetWindowSize(window, static_cast<int>(width) * scale, static_cast<int>(height) * scale);
  IM_CHECK(d.comes_true(
      [&] { return ImGui::GetIO().DisplaySize.x == width * static_cast<float>(scale); }));
  d.test->Yield(4);
}

// What lies behind a picture is the same in both themes.
void save_in_both_themes(const Drive& d, const std::string& name, int scale) {
  for (const Theme theme : {Theme::dark, Theme::light}) {
    d.shell->set_theme(theme);
    const char* word = theme == Theme::dark ? "dark" : "light";
    d.save_picture(fmt::format("{}/{} {} {}.png", picture_folder(), word, scale, name));
  }
}

// Something to see in each view: changes with their effects, and a prediction.
void turn_some_knobs(const Drive& d, const std::vector<std::string>& settings) {
  Session& session = d.session();
  Turning& turning = session.turning;
  IM_CHECK(d.comes_true(
      [&] { return session.pieces.has_facts() && session.pieces.steps().size() > 8; }));
  IM_CHECK(d.comes_true([&] { return turning.can_turn(); }));
  for (const std::string& setting : settings) {
    const std::size_t before = turning.effects.size();
    turning.set_now({setting});
    IM_CHECK(d.comes_true([&] {
      return turning.effects.size() == before + 1 && turning.effects.back().after_count >= 3;
    }));
  }
  IM_CHECK(d.comes_true([&] { return turning.effects.back().is_settled; }));
  // On a busy machine a prediction may take long; the pictures are then without it.
  d.comes_true([&] { return turning.advice(Question::suggest) != nullptr; },
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
  Turning& turning = d.session().turning;
  for (const auto& [key, value] : {std::pair("buffers", "5"), std::pair("density", "0.05"),
                                   std::pair("device_map", "8,18,12,12")}) {
    const control::Knob* knob = turning.control->knob(key);
    IM_CHECK(knob != nullptr);
    turning.choose(*knob, value);
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
    resize(d, scale == 1 ? 1920 : 1500, scale == 1 ? 1080 : 850, scale);
    turn_some_knobs(d, settings);
    choose_span(d);
    save_in_both_themes(d, "all", scale);
    choose_some(d);
    save_in_both_themes(d, "all, pending", scale);
    resize(d, 960, 640, scale);
    save_in_both_themes(d, "all, small", scale);
    show_alone(d, "Timeline");
    for (const std::unique_ptr<View>& view : d.shell->views()) {
      const std::string title = view->title();
      show_alone(d, title);
      fill(d, title);
      save_in_both_themes(d, "view " + title, scale);
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
