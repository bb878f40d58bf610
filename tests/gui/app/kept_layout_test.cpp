// Layouts that were kept in a large window, in a smaller one: nothing is squeezed to nothing.

#include <imgui_internal.h>

#include <catch2/catch.hpp>

#include "gui/views/session.h"
#include "tests/gui/app/virtual_display.h"
#include "tests/gui/app/window_fixture.h"

namespace sluice::gui {
namespace {

AppOptions of_size(const std::string& kept, int width, int height) {
  AppOptions options = options_for(run_with_slow_step());
  options.settings_path = test_path(kept);
  options.window.width = width;
  options.window.height = height;
  return options;
}

ImRect pane(const char* view) { return ImGui::FindWindowByName(view)->DockNode->Rect(); }

}  // namespace

TEST_CASE("a kept layout gives each view its share of a smaller window") {
  if (!can_run()) return;
  const std::string large = drive(of_size("shares.ini", 1920, 1080), [](const Drive& d) {
    IM_CHECK(d.settles());
    // Borders moved by a person, and a view that is moved to another dock.
    const ImRect knobs = pane("Knobs");
    d.test->MouseMoveToPos({knobs.Min.x - 2, knobs.GetCenter().y});
    d.test->MouseDragWithDelta({-240, 0});
    d.test->Yield(3);
    d.test->DockInto("Links", "Devices");
    IM_CHECK_GT(pane("Knobs").GetWidth(), 500.0F);
  });
  CHECK(large == "");
  const std::string small = drive(of_size("shares.ini", 1024, 700), [](const Drive& d) {
    IM_CHECK(d.settles());
    const ImRect timeline = pane("Timeline");
    IM_CHECK_GT(timeline.GetWidth(), 400.0F);
    IM_CHECK_GT(timeline.GetHeight(), 300.0F);
    IM_CHECK_GE(pane("Knobs").GetWidth(), 229.0F);
    IM_CHECK_GE(pane("Overview").GetWidth(), 229.0F);
    IM_CHECK_GE(pane("Statistics").GetHeight(), 159.0F);
    // Somebody's own docks stay.
    IM_CHECK(ImGui::FindWindowByName("Links")->DockId ==
             ImGui::FindWindowByName("Devices")->DockId);
    d.picture_with_all("kept layout smaller");
  });
  CHECK(small == "");
}

TEST_CASE("a layout that nobody has changed becomes the one of a small window") {
  if (!can_run()) return;
  const auto knobs_apart = [](const Drive& d, bool* is_apart) {
    IM_CHECK(d.settles());
    *is_apart =
        ImGui::FindWindowByName("Knobs")->DockId != ImGui::FindWindowByName("Overview")->DockId;
  };
  bool is_apart = false;
  const auto script = [&](const Drive& d) { knobs_apart(d, &is_apart); };
  CHECK(drive(of_size("shape.ini", 1920, 1080), script) == "");
  CHECK(is_apart);
  CHECK(drive(of_size("shape.ini", 800, 540), script) == "");
  CHECK_FALSE(is_apart);
  CHECK(drive(of_size("shape.ini", 1920, 1080), script) == "");
  CHECK(is_apart);
}

}  // namespace sluice::gui
