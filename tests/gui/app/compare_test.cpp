// The view that lays two runs, or two stretches of one, side by side.

#include <catch2/catch.hpp>

#include "gui/views/session.h"
#include "tests/gui/app/virtual_display.h"
#include "tests/gui/app/window_fixture.h"

namespace sluice::gui {
namespace {

// The list of what makes two runs no pair.
bool says_incomparable(const Drive& d) {
  const ImGuiTestItemInfo pair = d.test->WindowInfo("//Compare/##pair", ImGuiTestOpFlags_NoError);
  if (pair.Window == nullptr) return false;
  d.test->SetRef(pair.Window);
  const bool is_there = d.test->ItemExists("###incomparable");
  d.test->SetRef("");
  return is_there;
}

}  // namespace

TEST_CASE("two runs, and two stretches of one, are compared", "[long]") {
  if (!can_run()) return;
  const std::string other = test_path("other") + "/run.db";
  CHECK(ChildProcess(train_command("other", 8) + " --set buffers=5").wait() == 0);
  const std::string unlike = test_path("unlike") + "/run.db";
  CHECK(ChildProcess(train_command("unlike", 8) + " --set batch=1").wait() == 0);
  const std::string problem = drive(options_for(trained_run()), [&](const Drive& d) {
    IM_CHECK(d.settles());
    Session& session = d.session();
    session.foreground.bring("Compare");
    d.test->Yield(4);
    d.picture_with_all("compare empty");
    d.test->ItemInputValue("//Compare/##other", other.c_str());
    // The tables are there when both were read and nothing was wrong.
    IM_CHECK(d.comes_true([&] {
      return d.test->WindowInfo("//Compare/##pair", ImGuiTestOpFlags_NoError).Window != nullptr;
    }));
    d.picture_with_all("compare runs");
    IM_CHECK(!says_incomparable(d));
    d.test->ItemInputValue("//Compare/##other", unlike.c_str());
    IM_CHECK(d.comes_true([&] { return says_incomparable(d); }));
    d.picture_with_all("compare incomparable");
    d.test->ItemInputValue("//Compare/##other", other.c_str());
    IM_CHECK(d.comes_true([&] { return !says_incomparable(d); }));
    d.test->ItemClick("//Timeline/Fit step");
    session.timeline.measure.set({session.pieces.steps()[3].ts, session.pieces.steps()[4].ts});
    d.test->WindowFocus("//Timeline");
    d.test->KeyPress(ImGuiKey_P);
    IM_CHECK(session.timeline.measure.pinned().has_value());
    session.timeline.measure.set({session.pieces.steps()[6].ts, session.pieces.steps()[7].ts});
    d.test->Yield(4);
    // Pinning A turned the view to stretches.
    IM_CHECK(d.comes_true([&] {
      return d.test->WindowInfo("//Compare/##names", ImGuiTestOpFlags_NoError).Window != nullptr;
    }));
    d.picture_with_all("compare stretches");
  });
  CHECK(problem == "");
}

}  // namespace sluice::gui
