// The view of many runs: its table is read, filtered and sorted, curves are laid over each other,
// and a double click opens a run.

#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "gui/views/session.h"
#include "tests/gui/app/virtual_display.h"
#include "tests/gui/app/window_fixture.h"
#include "tests/profiler/report/made_run.h"

namespace sluice::gui {
namespace {

std::string made_folder() {
  const std::string folder = test_path("many");
  for (const int steps : {40, 9, 24}) {
    const std::string run = fmt::format("{}/run-{}", folder, steps);
    fs::create_directories(run);
    report::write_made_run(run + "/run.db", {.step_count = steps});
  }
  return folder;
}

ImGuiTestItemInfo item(const Drive& d, const char* name) {
  return d.test->ItemInfo(fmt::format("//Runs/**/{}", name).c_str(), ImGuiTestOpFlags_NoError);
}

bool has_item(const Drive& d, const char* name) { return item(d, name).ID != 0; }

// The tick of the row, which lies left of its name.
void tick(const Drive& d, const char* name) {
  const ImRect row = item(d, name).RectFull;
  const ImGuiWindow* table = item(d, name).Window;
  d.test->MouseMoveToPos({table->Pos.x + 14, row.GetCenter().y});
  d.test->MouseClick(0);
  d.test->Yield(3);
}

}  // namespace

TEST_CASE("runs of a folder are chosen, laid over each other and opened") {
  if (!can_run()) return;
  const std::string folder = made_folder();
  const std::string problem = drive(options_for(folder + "/run-24/run.db"), [&](const Drive& d) {
    IM_CHECK(d.settles());
    d.session().foreground.bring("Runs");
    d.test->Yield(4);
    d.test->ItemInputValue("//Runs/##folder", folder.c_str());
    IM_CHECK(d.comes_true([&] { return has_item(d, "run-40"); }));
    IM_CHECK(has_item(d, "run-9"));
    d.picture_with_all("runs table");
    d.test->ItemInputValue("//Runs/##filter", "run-4");
    IM_CHECK(d.comes_true([&] { return !has_item(d, "run-9"); }));
    IM_CHECK(has_item(d, "run-40"));
    d.test->ItemInputValue("//Runs/##filter", "");
    IM_CHECK(d.comes_true([&] { return has_item(d, "run-9"); }));
    tick(d, "run-40");
    tick(d, "run-24");
    IM_CHECK(d.comes_true([&] { return has_item(d, "##name 0") && has_item(d, "##name 1"); }));
    d.test->Yield(9);
    d.picture_with_all("runs curves");
    const ImRect row = item(d, "run-9").RectFull;
    d.test->MouseMoveToPos({row.Min.x + 10, row.GetCenter().y});
    d.test->MouseDoubleClick(0);
    IM_CHECK(d.comes_true([&] {
      const RunFeed* feed = d.session().pieces.feed.get();
      return feed != nullptr && feed->path() == folder + "/run-9/run.db";
    }));
  });
  CHECK(problem == "");
}

}  // namespace sluice::gui
