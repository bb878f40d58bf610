// The view that lays two runs, or two stretches of one, side by side.

#include <catch2/catch.hpp>

#include "tests/gui/app/virtual_display.h"
#include "tests/gui/app/window_fixture.h"

namespace sluice::gui {

TEST_CASE("two runs, and two stretches of one, are compared", "[long]") {
  if (!can_run()) return;
  const std::string other = test_path("other") + "/run.db";
  CHECK(ChildProcess(train_command("other", 8) + " --set buffers=5").wait() == 0);
  const std::string problem = drive(options_for(trained_run()), [&other](const Drive& d) {
    IM_CHECK(d.settles());
    Session& session = d.session();
    session.foreground.bring("Compare");
    d.test->Yield(4);
    d.save_picture(picture_folder() + "/compare empty.png");
    d.test->ItemInputValue("//Compare/##other", other.c_str());
    // The tables are there when both were read and nothing was wrong.
    IM_CHECK(d.comes_true([&] {
      return d.test->WindowInfo("//Compare/##pair", ImGuiTestOpFlags_NoError).Window != nullptr;
    }));
    d.save_picture(picture_folder() + "/compare runs.png");
    d.test->ItemClick("//Timeline/Fit step");
    session.timeline.measure({session.pieces.steps()[3].ts, session.pieces.steps()[4].ts});
    d.test->WindowFocus("//Timeline");
    d.test->KeyPress(ImGuiKey_P);
    IM_CHECK(session.timeline.pinned().has_value());
    session.timeline.measure({session.pieces.steps()[6].ts, session.pieces.steps()[7].ts});
    d.test->Yield(4);
    d.test->ItemClick("//Compare/two stretches");
    IM_CHECK(d.comes_true([&] {
      return d.test->WindowInfo("//Compare/##names", ImGuiTestOpFlags_NoError).Window != nullptr;
    }));
    d.save_picture(picture_folder() + "/compare stretches.png");
  });
  CHECK(problem == "");
}

}  // namespace sluice::gui
