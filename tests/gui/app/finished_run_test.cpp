// A run that is over is asked in the window what other settings would do, and another one is begun.

#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>
#include <string_view>

#include "gui/data/span_scan.h"
#include "gui/views/session.h"
#include "tests/gui/app/virtual_display.h"
#include "tests/gui/app/window_fixture.h"

namespace sluice::gui {
namespace {

std::string text_of(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// The program `sluice`, which only writes down what it was asked to train.
std::string noting_script() {
  const std::string path = test_path("noting");
  std::ofstream(path) << "#!/bin/sh\ncase $1 in train) echo \"$@\" > '" + path +
                             ".trained'; exit 1;; esac\nexec '" + sluice_program() + "' \"$@\"\n";
  fs::permissions(path, fs::perms::owner_all);
  return path;
}

}  // namespace

TEST_CASE("what if, tune and a new run beside a run that is over") {
  if (!can_run()) return;
  AppOptions options = options_for(trained_run());
  options.sluice = noting_script();
  const std::string problem = drive(options, [&](const Drive& d) {
    IM_CHECK(d.settles());
    RunControl& control = d.session().control;
    d.session().foreground.bring("Knobs");
    d.test->Yield(4);
    IM_CHECK(control.choice.is_for_new_run());
    // With the words of `sluice knobs`, which the record does not hold.
    const auto pipeline = [&] { return control.choice.knobs(d.session().pieces.facts())[1]; };
    IM_CHECK(d.comes_true([&] { return pipeline().words.size() == 3; }));
    d.test->SetRef(d.test->WindowInfo("//Knobs/##knobs").ID);
    d.test->ItemClick("pipeline/serial");
    IM_CHECK_EQ(control.choice.pending().size(), 1U);
    d.test->ItemClick("//Knobs/What if");
    IM_CHECK(
        d.comes_true([&] { return control.consultation.advice(Question::what_if) != nullptr; }));
    const auto advice = control.consultation.advice(Question::what_if);
    IM_CHECK_STR_EQ(advice->problem.c_str(), "");
    IM_CHECK_EQ(advice->predicted.each.size(), 1U);
    d.test->Yield(20);  // the tooltip comes up, above the button
    d.picture_with_all("finished what if");
    d.test->ItemClick("//Knobs/Copy the command");
    const std::string command = ImGui::GetClipboardText();
    IM_CHECK(command.find("sluice train --like ") != std::string::npos);
    IM_CHECK(command.find(" --set pipeline=serial --set output=") != std::string::npos);
    IM_CHECK(command.ends_with("/done-2"));
    d.test->ItemClick("//Knobs/Discard");
    IM_CHECK(control.choice.pending().empty());
    d.test->ItemClick("//Knobs/Tune");
    IM_CHECK(d.comes_true([&] { return control.consultation.advice(Question::tune) != nullptr; }));
    IM_CHECK_STR_EQ(control.consultation.advice(Question::tune)->problem.c_str(), "");
    d.picture_with_all("finished tune");
    d.test->Yield(2);  // what is proposed has been chosen
    control.choice.discard();
    d.test->Yield(2);
    d.test->SetRef(d.test->WindowInfo("//Knobs/##knobs").ID);
    d.test->ItemInputValue("buffers/##value", 7);
    d.test->ItemClick("//Knobs/###new run");
    // It is opened as soon as it is begun.
    IM_CHECK(d.comes_true(
        [&] { return d.session().pieces.feed->path() == test_path("done-2") + "/run.db"; }));
    IM_CHECK(d.comes_true([&] { return !text_of(options.sluice + ".trained").empty(); }));
  });
  CHECK(problem == "");
  CHECK(text_of(options.sluice + ".trained") ==
        "train --like " + trained_run() + " --set buffers=7 --set output=" + test_path("done-2") +
            "\n");
}

TEST_CASE("the statistics are of the part of the run that is chosen") {
  if (!can_run()) return;
  const std::string problem = drive(options_for(trained_run()), [](const Drive& d) {
    IM_CHECK(d.settles());
    Session& session = d.session();
    session.foreground.bring("Statistics");
    d.test->Yield(4);
    const std::int64_t all = session.pieces.statistics->seen_count;
    const auto seen = [&session] {
      return session.pieces.range_statistics == nullptr
                 ? 0
                 : session.pieces.range_statistics->seen_count;
    };
    // buffers was changed at step 4 of 8: what came before is not mixed with what is now.
    IM_CHECK(d.comes_true([&] { return seen() > 0; }));
    IM_CHECK_LT(seen(), all);
    IM_CHECK_EQ(session.pieces.range_statistics->range.begin, session.pieces.steps()[4].ts);
    d.picture_with_all("statistics since the last change");
    const rundb::StepRow& step = session.pieces.steps()[1];
    session.timeline.measure.set({step.ts, step.ts + step.dur});
    d.test->SetRef("//Statistics");
    d.test->ComboClick("##part/measured range");
    IM_CHECK(d.comes_true([&] {
      return session.pieces.range_statistics->range == ScanRange{step.ts, step.ts + step.dur};
    }));
    d.picture_with_all("statistics of a measured range");
    d.test->ComboClick("##part/whole run");
    d.test->Yield(3);
    d.picture_with_all("statistics of the whole run");
  });
  CHECK(problem == "");
}

}  // namespace sluice::gui
