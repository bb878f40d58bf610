// Knobs of a live run are turned in the window.

#include <atomic>
#include <catch2/catch.hpp>
#include <filesystem>
#include <string_view>
#include <thread>

#include "gui/views/session.h"
#include "tests/gui/app/virtual_display.h"
#include "tests/gui/app/window_fixture.h"

namespace sluice::gui {
namespace {

std::atomic<bool> g_holds = false;  // answers

// Stands in for the simulation.
Advice made_advice(const std::string& /*database*/, Question question,
                   const std::vector<std::string>& /*settings*/, const Stops& stops) {
  while (g_holds && !stops()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  Advice advice;
  advice.predicted.fit_error = 0.03;
  advice.predicted.simulated_count = 21;
  if (question == Question::tune) {
    advice.predicted.each = {{.settings = {"buffers=5", "subgroup_elements=2"},
                              .from = {"buffers=2", "subgroup_elements=1"},
                              .seconds = 1,
                              .change = -0.5,
                              .why = ""}};
    return advice;
  }
  advice.predicted.each = {{.settings = {"buffers=4"},
                            .from = {"buffers=2"},
                            .seconds = 0.09,
                            .change = -0.14,
                            .why = "reads wait for buffers"},
                           {.settings = {"devices=5"},
                            .from = {"devices=4"},
                            .seconds = 0.1,
                            .change = -0.05,
                            .why = "less to move",
                            .needs_new_run = true}};
  advice.predicted.together = {.settings = {"buffers=5", "wire=native"},
                               .from = {"buffers=2", "wire=fp32"},
                               .seconds = 0.08,
                               .change = -0.25,
                               .why = ""};
  return advice;
}

}  // namespace

TEST_CASE("a knob is turned in the window, its effect appears, and it is reverted") {
  if (!can_run()) return;
  const std::string problem = drive_live("turned", options_for(""), 4000, [](const Drive& d) {
    RunControl& control = d.session().control;
    IM_CHECK_STR_EQ(value_in_force(d, "buffers").c_str(), "2");  // by --at 4:buffers=2
    d.test->SetRef(d.test->WindowInfo("//Knobs/##knobs").ID);
    d.test->ItemInputValue("buffers/##value", 6);
    IM_CHECK_EQ(control.choice.pending().size(), 1U);
    d.test->ItemClick("prefetch/false");
    IM_CHECK_EQ(control.choice.pending().size(), 2U);
    IM_CHECK_STR_EQ(value_in_force(d, "buffers").c_str(), "2");  // pending is not effective
    d.picture_with_all("knobs pending");
    const std::size_t before = control.effects().size();
    d.test->KeyPress(ImGuiMod_Ctrl | ImGuiKey_Enter);
    IM_CHECK(d.comes_true([&] { return value_in_force(d, "buffers") == "6"; }));
    IM_CHECK_STR_EQ(value_in_force(d, "prefetch").c_str(), "false");
    IM_CHECK(d.comes_true([&] { return control.choice.pending().empty(); }));
    IM_CHECK(d.comes_true([&] {
      return control.effects().size() == before + 1 && control.effects().back().is_settled &&
             control.effects().back().figure("update") != nullptr;
    }));
    const ChangeEffect& effect = control.effects().back();
    IM_CHECK_EQ(effect.changes.size(), 2U);
    IM_CHECK_STR_EQ(effect.changes[0].who.c_str(), "gui");
    d.picture_with_all("knobs effect");
    d.test->SetRef(d.test->WindowInfo("//Knobs/##effects").ID);
    d.test->ItemClick("Revert");
    IM_CHECK(d.comes_true([&] { return value_in_force(d, "buffers") == "2"; }));
    IM_CHECK_STR_EQ(value_in_force(d, "prefetch").c_str(), "true");
    IM_CHECK(d.comes_true([&] { return control.effects().size() == before + 2; }));
  });
  CHECK(problem == "");
}

TEST_CASE("what the run refuses stays chosen, with the run's own sentence", "[long]") {
  if (!can_run()) return;
  const std::string problem = drive_live("refused", options_for(""), 4000, [](const Drive& d) {
    RunControl& control = d.session().control;
    d.test->SetRef(d.test->WindowInfo("//Knobs/##knobs").ID);
    d.test->ItemInputValue("io_bytes/##value", "5000");
    IM_CHECK_EQ(control.choice.pending().size(), 1U);
    d.test->ItemClick("//Knobs/###apply");
    IM_CHECK(d.comes_true([&] { return !control.choice.pending().refusal().empty(); }));
    IM_CHECK(control.choice.pending().refusal().find("4KiB") != std::string::npos);
    IM_CHECK_EQ(control.choice.pending().size(), 1U);
    d.picture_with_all("knobs refused");
    d.test->ItemClick("//Knobs/Discard");
    IM_CHECK(control.choice.pending().empty());
    // The command sluice set, or another window: what it did is seen here.
    ChildProcess(sluice_program() + " set " + test_path("refused") + "/run.db queue_depth=16")
        .wait();
    IM_CHECK(d.comes_true([&] { return value_in_force(d, "queue_depth") == "16"; }));
  });
  CHECK(problem == "");
}

TEST_CASE("the run watches a change and says whether it kept it or took it back", "[long]") {
  if (!can_run()) return;
  const std::string problem = drive_live("watched", options_for(""), 4000, [](const Drive& d) {
    RunControl& control = d.session().control;
    d.test->ItemCheck("//Knobs/revert if a step takes");
    d.test->ItemInputValue("//Knobs/##percent", 3);
    IM_CHECK(control.take_back_rule.is_on);
    IM_CHECK_EQ(control.take_back_rule.percent, 3);
    d.test->SetRef(d.test->WindowInfo("//Knobs/##knobs").ID);
    d.test->ItemInputValue("density/##value", "0.1");
    d.test->ItemClick("pipeline/serial");
    d.test->ItemClick("//Knobs/###apply");
    // Which of the two depends on how fast this computer is; that the run says one does not.
    const auto last = [&control] { return control.choice.state()->asked.back(); };
    IM_CHECK(d.comes_true([&] {
      return !control.choice.state()->asked.empty() &&
             (last().outcome == SetOutcome::kept || last().outcome == SetOutcome::reverted);
    }));
    IM_CHECK_STR_EQ(last().revert_if.c_str(), "step_time>+3%");
    IM_CHECK(last().message.find("limit +3 %") != std::string::npos);
    const bool is_kept = last().outcome == SetOutcome::kept;
    IM_CHECK(d.comes_true([&] { return value_in_force(d, "density") == (is_kept ? "0.1" : "1"); }));
    d.picture_with_all("watched");
  });
  CHECK(problem == "");
}

TEST_CASE("what should help is predicted and applied, and a proposal goes into what is chosen",
          "[long]") {
  if (!can_run()) return;
  AppOptions options = options_for("");
  options.answers = made_advice;
  const std::string problem = drive_live("advised", options, 4000, [](const Drive& d) {
    RunControl& control = d.session().control;
    IM_CHECK(d.comes_true(
        [&] { return control.consultation.advisor()->advice(Question::suggest) != nullptr; }));
    d.session().foreground.bring("Overview");
    d.test->Yield(4);
    // What needs another run has no Apply, and says what to do.
    IM_CHECK_EQ(control.consultation.next().now.size(), 1U);
    IM_CHECK_EQ(control.consultation.next().another_run.size(), 1U);
    IM_CHECK(d.has_item("//Overview/$$1/Copy"));
    IM_CHECK(!d.test->ItemExists("//Overview/$$1/Apply"));
    IM_CHECK(d.click_until("//Overview/$$1/Copy", [] {
      return std::string_view(ImGui::GetClipboardText()) == "--set devices=5";
    }));
    IM_CHECK(control.consultation.next().together.has_value());
    d.picture_with_all("turn next");
    // It is hidden while the answer is older than what is in force.
    IM_CHECK(
        d.click_until("//Overview/$$0/Apply", [&] { return value_in_force(d, "buffers") == "4"; }));
    d.test->ItemClick("//Knobs/Tune");
    IM_CHECK(d.comes_true([&] { return control.choice.pending().chosen("buffers") != nullptr; }));
    IM_CHECK_EQ(control.choice.pending().size(), 1U);  // subgroup_elements is no knob
    IM_CHECK_STR_EQ(control.choice.pending().chosen("buffers")->c_str(), "5");
    d.test->ItemClick("//Knobs/What if");
    IM_CHECK(d.comes_true([&] {
      const auto advice = control.consultation.advisor()->advice(Question::what_if);
      return advice != nullptr && advice->settings == control.choice.pending().settings();
    }));
    d.picture_with_all("what if");
    IM_CHECK_STR_EQ(value_in_force(d, "buffers").c_str(), "4");
    d.test->KeyPress(ImGuiMod_Ctrl | ImGuiKey_Backspace);
    IM_CHECK(control.choice.pending().empty());
    const std::vector<std::string> asked = {"buffers=5"};
    IM_CHECK(control.consultation.advisor()->advice(Question::what_if)->settings == asked);
    // The answer from before a change is not shown for a question that was asked since.
    control.set_now({"buffers=3"});
    IM_CHECK(d.comes_true([&] { return control.consultation.is_outdated(Question::what_if); }));
    g_holds = true;
    control.choice.choose_all({"buffers=6"});
    control.ask_what_if();
    d.test->Yield(4);
    IM_CHECK(control.consultation.advisor()->is_working(Question::what_if));
    IM_CHECK(control.consultation.advice(Question::what_if) == nullptr);
    g_holds = false;
    IM_CHECK(
        d.comes_true([&] { return control.consultation.advice(Question::what_if) != nullptr; }));
  });
  CHECK(problem == "");
}

}  // namespace sluice::gui
