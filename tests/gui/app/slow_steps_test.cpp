// Each planted slow step is named in the window as it is by `sluice show` and the page
// (tests/e2e/explained_test.py).

#include "tests/profiler/analyze/slow_steps.h"

#include <catch2/catch.hpp>

#include "gui/views/session.h"
#include "profiler/analyze/sampled_time.h"
#include "profiler/analyze/step_explanation.h"
#include "tests/gui/app/virtual_display.h"
#include "tests/gui/app/window_fixture.h"

namespace sluice::gui {

TEST_CASE("planted slow steps are named with their cause and the reason") {
  if (!can_run()) return;
  const std::string folder = test_path("slow");
  fs::create_directories(folder);
  const std::vector<analyze::SlowStep> all = analyze::write_slow_steps(folder);
  CHECK(all.size() >= 20);
  const std::string problem = drive(options_for(""), [&](const Drive& d) {
    for (const analyze::SlowStep& slow : all) {
      d.shell->open_run(folder + "/" + slow.name + ".db");
      Session& session = d.session();
      IM_CHECK(d.comes_true(
          [&] { return session.pieces.has_facts() && session.pieces.steps().size() == 30; }));
      session.timeline.explain(slow.steps);
      const auto explanation = [&] { return session.pieces.explanation; };
      IM_CHECK(d.comes_true([&] {
        return explanation() != nullptr && explanation()->steps.first == slow.steps.first;
      }));
      const analyze::StepReason* reason = explanation()->first_reason();
      IM_CHECK(reason != nullptr);
      IM_CHECK(explanation()->is_beyond_noise);
      IM_CHECK(reason->kind == slow.kind);
      if (!slow.operation.empty())
        IM_CHECK_STR_EQ(reason->operation.c_str(), slow.operation.c_str());
      if (!slow.device.empty()) IM_CHECK_STR_EQ(reason->device.c_str(), slow.device.c_str());
      if (!slow.link.empty()) IM_CHECK_STR_EQ(reason->link.c_str(), slow.link.c_str());
      // The reason is drawn, and leads to its operations, where there are some.
      IM_CHECK(reason->spans.empty() || d.has_item("//Details/$$0/reason"));
    }
  });
  CHECK(problem == "");
}

TEST_CASE("a step that is named at the start is shown with why it took as long") {
  if (!can_run()) return;
  AppOptions options = options_for(run_with_slow_step());
  options.steps = analyze::StepRange{8, 8};
  const std::string problem = drive(options, [](const Drive& d) {
    IM_CHECK(d.settles());
    const Session& session = d.session();
    IM_CHECK(session.pieces.explanation != nullptr);
    IM_CHECK(session.pieces.explanation->is_beyond_noise);
    const rundb::StepRow& step = session.pieces.steps()[8];
    const TimeRange view = session.timeline.view.range();
    IM_CHECK(view.begin <= step.ts && view.end >= step.ts + step.dur);
    IM_CHECK_LT(view.width(), 2 * step.dur);
    // What its processors did stands beneath.
    const analyze::SampledTime* samples = session.pieces.samples.get();
    IM_CHECK(samples != nullptr);
    IM_CHECK_EQ(samples->functions.sample_count, 40);
    IM_CHECK_STR_EQ(samples->functions.by_self.front().name.c_str(), "product");
    d.picture_with_all("processor samples");
  });
  CHECK(problem == "");
  options.steps = analyze::StepRange{40, 41};
  CHECK(drive(options, [](const Drive& d) {
          IM_CHECK(d.settles());
          IM_CHECK(d.session().pieces.explanation != nullptr);
          IM_CHECK(!d.session().pieces.explanation->why_unknown.empty());
          d.picture_with_all("step that is not there");
        }) == "");
}

}  // namespace sluice::gui
