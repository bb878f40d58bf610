// Mouse and keys on the timeline of a finished run.

#include <catch2/catch.hpp>
#include <cmath>

#include "tests/gui/app/window_fixture.h"

namespace sluice::gui {
namespace {

ImVec2 canvas_point(const Drive& drive, float x, float y) {
  const ImGuiTestItemInfo canvas = drive.test->ItemInfo("//Timeline/##canvas");
  IM_CHECK_RETV(canvas.ID != 0, ImVec2());
  return {canvas.RectFull.Min.x + canvas.RectFull.GetWidth() * x,
          canvas.RectFull.Min.y + canvas.RectFull.GetHeight() * y};
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
    const TimeRange all = session.timeline.view();
    d.test->MouseMoveToPos(canvas_point(d, 0.5F, 0.5F));
    d.test->MouseWheelY(6);
    d.test->Yield(2);
    IM_CHECK_LT(session.timeline.view().width(), all.width() / 2);
    IM_CHECK(session.timeline.view().begin > all.begin && session.timeline.view().end < all.end);
    const TimeRange zoomed = session.timeline.view();
    d.test->MouseDragWithDelta({-200, 0});
    IM_CHECK_GT(session.timeline.view().begin, zoomed.begin);
    IM_CHECK_LT(std::abs(session.timeline.view().width() - zoomed.width()), 3);
    d.test->KeyDown(ImGuiMod_Shift);
    d.test->MouseMoveToPos(canvas_point(d, 0.4F, 0.5F));
    d.test->MouseDragWithDelta({180, 0});
    d.test->KeyUp(ImGuiMod_Shift);
    IM_CHECK(session.timeline.measured().has_value());
    d.test->KeyPress(ImGuiKey_Escape);
    IM_CHECK(!session.timeline.measured().has_value());
    d.test->ItemClick("//Timeline/Fit step");
    IM_CHECK(d.settles());
    IM_CHECK(choose_some_span(d) != 0);
    IM_CHECK(d.comes_true([&] { return session.pieces.chosen != nullptr; }));
    d.test->KeyPress(ImGuiKey_Z);
    IM_CHECK(session.timeline.view().width() <= 3 * session.pieces.chosen->row.dur + 200);
  });
  CHECK(problem == "");
}

TEST_CASE("Ctrl+drag zooms to the stretch that was drawn", "[long]") {
  if (!can_run()) return;
  const std::string problem = drive(options_for(trained_run()), [](const Drive& d) {
    IM_CHECK(d.settles());
    Session& session = d.session();
    d.test->ItemClick("//Timeline/Fit run");
    const TimeRange all = session.timeline.view();
    d.test->MouseMoveToPos(canvas_point(d, 0.4F, 0.5F));
    d.test->KeyDown(ImGuiMod_Ctrl);
    d.test->MouseDragWithDelta({200, 0});
    d.test->KeyUp(ImGuiMod_Ctrl);
    d.test->Yield(2);
    // 200 pixels of the canvas, less what the names at its left take, are now its whole width.
    const ImGuiTestItemInfo canvas = d.test->ItemInfo("//Timeline/##canvas");
    const double share =
        static_cast<double>(session.timeline.view().width()) / static_cast<double>(all.width());
    IM_CHECK_GT(share, 0.9 * 200 / canvas.RectFull.GetWidth());
    IM_CHECK_LT(share, 1.6 * 200 / canvas.RectFull.GetWidth());
    IM_CHECK(session.timeline.view().begin > all.begin && session.timeline.view().end < all.end);
    IM_CHECK(!session.timeline.follows());
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
