#include "gui/data/side_by_side.h"

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>

#include "gui/data/background.h"
#include "tests/gui/data/feed_fixture.h"

namespace sluice::gui {

TEST_CASE("two runs: medians, causes, and what they were set to") {
  const TempFolder folder;
  write_made_run(folder.file("a.db"), {.step_count = 6, .more_meta = {{"buffers", "2"}}});
  write_made_run(folder.file("b.db"),
                 {.step_count = 6, .loss = 2.4, .more_meta = {{"buffers", "4"}}});
  const RunPair pair = compare_two_runs(folder.file("a.db"), folder.file("b.db"));
  REQUIRE(pair.problem.empty());
  CHECK(pair.comparison.steps_a == 4);  // without the first two
  const auto figure = [&](const std::string& key) {
    return *std::ranges::find(pair.comparison.figures, key, &analyze::ComparedFigure::key);
  };
  CHECK(figure("step_time").a == Approx(0.1));
  CHECK(figure("forward").a == Approx(0.02));
  CHECK(figure("loss").b == Approx(1.9));
  REQUIRE(pair.comparison.differences.size() == 1);
  CHECK(pair.comparison.differences[0].b == "4");
  REQUIRE_FALSE(pair.causes.empty());
  double sum_ns = 0;
  for (const analyze::CausePair& cause : pair.causes) sum_ns += cause.a_ns;
  CHECK(sum_ns == Approx(100e6));  // all of a step
}

TEST_CASE("a run that is not there, has no steps or no operations is said") {
  const TempFolder folder;
  write_made_run(folder.file("run.db"), {});
  write_made_run(folder.file("none.db"), {.step_count = 0});
  write_made_run(folder.file("bare.db"), {.has_spans = false});
  CHECK(compare_two_runs(folder.file("gone.db"), folder.file("run.db")).problem.find("gone.db") !=
        std::string::npos);
  CHECK(compare_two_runs(folder.file("run.db"), folder.file("none.db"))
            .problem.find("no step has ended") != std::string::npos);
  const RunPair bare = compare_two_runs(folder.file("run.db"), folder.file("bare.db"));
  CHECK(bare.problem.empty());
  CHECK(bare.causes.empty());
  CHECK_FALSE(compare_two_stretches(folder.file("gone.db"), {0, 10}, {10, 20}).problem.empty());
}

TEST_CASE("two stretches: what lies in each, cut where it reaches over") {
  const TempFolder folder;
  write_made_run(folder.file("run.db"), {.step_count = 3});
  // All of forward and half of backward of the first step; all of backward of the second step.
  const StretchPair pair =
      compare_two_stretches(folder.file("run.db"), {0, 35 * kMs}, {120 * kMs, 150 * kMs});
  REQUIRE(pair.problem.empty());
  REQUIRE(pair.names.size() == 2);
  CHECK(pair.names[0].name == "backward");
  CHECK(pair.names[0].a.count == 1);
  CHECK(pair.names[0].a.busy_ns == Approx(15e6));
  CHECK(pair.names[0].b.busy_ns == Approx(30e6));
  CHECK(pair.names[1].name == "forward");
  CHECK(pair.names[1].b.count == 0);
  const StretchPair reads =
      compare_two_stretches(folder.file("run.db"), {50 * kMs, 60 * kMs}, {0, 1});
  const auto read = std::ranges::find(reads.names, "state_read", &NamePair::name);
  REQUIRE(read != reads.names.end());
  CHECK(read->a.count == 3);
  CHECK(read->a.busy_ns == Approx(30e6));
  // Half of two of 20 MB and two thirds of one of 5 MB, each with its padding.
  CHECK(read->a.bytes == Approx(20'004'096 + (5'004'096) * 2.0 / 3));
}

TEST_CASE("of work begun twice the last counts, and nobody waits for what is forgotten") {
  std::atomic<int> woken = 0;
  const auto wake = [&woken] { woken += 1; };
  const auto gate = std::make_shared<Mutex>();  // the first thread may be the last to let it go
  Background<int> background;
  gate->lock();
  background.begin(
      [gate] {
        const MutexLock wait_for_it(*gate);
        return 1;
      },
      wake);
  background.begin([] { return 2; }, wake);
  CHECK(comes_true([&] { return background.result() != nullptr; }));
  CHECK(*background.result() == 2);
  CHECK_FALSE(background.is_working());
  gate->unlock();
  background.begin([] { return 3; }, wake);
  CHECK(comes_true([&] { return *background.result() == 3; }));
  background.forget();
  CHECK(background.result() == nullptr);
  CHECK_FALSE(background.is_working());
  CHECK(comes_true([&] { return woken == 2; }));
}

}  // namespace sluice::gui
