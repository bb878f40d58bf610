// Shares of a live run's devices are moved in the window.

#include <catch2/catch.hpp>

#include "gui/views/session.h"
#include "tests/gui/app/virtual_display.h"
#include "tests/gui/app/window_fixture.h"

namespace sluice::gui {
namespace {

// Figures of further steps may move the cards between aiming and letting go: then once more.
void drag_share(const Drive& d, int amount, const char* from, const char* to,
                const std::string& wanted) {
  RunControl& control = d.session().control;
  // Drawn once a verdict is there that knows of a step.
  IM_CHECK(d.has_item("//Devices/##amount"));
  IM_CHECK(d.has_item(from));
  IM_CHECK(d.has_item(to));
  d.test->ItemInputValue("//Devices/##amount", amount);
  const auto is_chosen = [&] {
    const std::string* chosen = control.choice.pending().chosen("device_map");
    return chosen != nullptr && *chosen == wanted;
  };
  for (int round = 0; round < 6 && !is_chosen(); ++round) {
    control.choice.discard();
    d.test->ItemDragAndDrop(from, to);
    d.test->Yield(2);
  }
  IM_CHECK(is_chosen());
}

}  // namespace

TEST_CASE("a share is dragged from one device to another, and the run moves it") {
  if (!can_run()) return;
  const std::string problem = drive_live("shares", options_for(""), 4000, [](const Drive& d) {
    RunControl& control = d.session().control;
    drag_share(d, 5, "//Devices/##csd0", "//Devices/##csd1", "8,18,12,12");
    IM_CHECK_STR_EQ(value_in_force(d, "device_map").c_str(), "even");
    d.picture_with_all("share pending");
    d.test->ItemClick("//Knobs/###apply");
    IM_CHECK(d.comes_true([&] { return value_in_force(d, "device_map") == "8,18,12,12"; }));
    IM_CHECK(d.comes_true([&] { return control.choice.pending().empty(); }));
  });
  CHECK(problem == "");
}

// Drained in the window, stopped in the window, and resumed without it.
TEST_CASE("a device is drained, the run stops after its step, and goes on without the device",
          "[long]") {
  if (!can_run()) return;
  const std::string database = test_path("drained") + "/run.db";
  ChildProcess training(train_command("drained", 4000));
  std::int64_t step_count = 0;
  const std::string problem = drive(options_for(database), [&](const Drive& d) {
    await_live_run(d);
    RunControl& control = d.session().control;
    // All that the last one has.
    drag_share(d, 12, "//Devices/##csd3", "//Devices/##csd0", "25,13,12,0");
    d.picture_with_all("drain pending");
    d.test->ItemClick("//Knobs/###apply");
    IM_CHECK(d.comes_true([&] { return value_in_force(d, "device_map") == "25,13,12,0"; }));
    const std::size_t count = d.session().pieces.steps().size();
    IM_CHECK(d.comes_true([&] { return d.session().pieces.steps().size() >= count + 2; }));
    d.test->KeyPress(ImGuiMod_Ctrl | ImGuiKey_P);
    d.test->Yield(3);
    d.test->KeyChars("run stop after");
    d.test->KeyPress(ImGuiKey_Enter);
    IM_CHECK(d.comes_true([&] { return !d.session().pieces.run->is_live; }));
    IM_CHECK(!control.choice.can_turn());
    IM_CHECK_STR_EQ(d.session().pieces.run->problem.c_str(), "");
    d.picture_with_all("stopped");
    step_count = static_cast<std::int64_t>(d.session().pieces.steps().size());
  });
  REQUIRE(problem == "");
  CHECK(training.wait() == 0);
  CHECK(step_count < 4000);
  const std::string resume =
      train_command("drained", static_cast<int>(step_count) + 3) + " --resume --set devices=";
  CHECK(ChildProcess(resume + "2").wait() != 0);  // csd2 has not been drained
  CHECK(ChildProcess(resume + "3").wait() == 0);
}

TEST_CASE("a share of 0 is typed into the knob of the shares", "[long]") {
  if (!can_run()) return;
  const std::string problem = drive_live("typed", options_for(""), 4000, [](const Drive& d) {
    RunControl& control = d.session().control;
    d.test->SetRef(d.test->WindowInfo("//Knobs/##knobs").ID);
    d.test->ItemInputValue("device_map/##csd1", 0);
    IM_CHECK(control.choice.pending().chosen("device_map") != nullptr);
    IM_CHECK_STR_EQ(control.choice.pending().chosen("device_map")->c_str(), "1,0,1,1");
    d.test->KeyPress(ImGuiMod_Ctrl | ImGuiKey_Enter);
    IM_CHECK(d.comes_true([&] { return value_in_force(d, "device_map") == "1,0,1,1"; }));
    IM_CHECK(d.comes_true([&] { return control.choice.pending().empty(); }));
    d.picture_with_all("drained");
  });
  CHECK(problem == "");
}

}  // namespace sluice::gui
