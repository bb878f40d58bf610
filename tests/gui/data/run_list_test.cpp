#include "gui/data/run_list.h"

#include <cmath>
#include <fstream>

#include "gui/data/run_path.h"
#include "tests/gui/data/feed_fixture.h"
#include "tests/gui/data/run_of_ranks.h"

namespace sluice::gui {

TEST_CASE("runs below a folder and those opened before are listed with what they are") {
  const TempFolder folder;
  std::filesystem::create_directories(folder.file("out/a/b/c"));
  write_made_run(folder.file("out/a/run.db"), {.step_count = 4});
  write_made_run(folder.file("elsewhere.db"), {.step_count = 2});
  write_made_run(folder.file("out/a/b/c/too deep.db"), {});
  std::ofstream(folder.file("out/no run.db")) << "text";
  const std::vector<RunSummary> runs =
      list_runs(folder.file("out"), {folder.file("elsewhere.db"), folder.file("gone.db")});
  REQUIRE(runs.size() == 2);
  const auto run = std::ranges::find(runs, folder.file("out/a/run.db"), &RunSummary::path);
  REQUIRE(run != runs.end());
  CHECK_FALSE(run->name.empty());
  CHECK(run->step_count == 4);
  CHECK(std::isfinite(run->loss));
  CHECK(summary_of(folder.file("out/no run.db")).name.empty());
  // Nobody asks a server before its run is opened.
  const std::string far = "ssh://trainer/out/run.db";
  const std::vector<RunSummary> with_far = list_runs(folder.file("out"), {far});
  CHECK(with_far.back().path == far);
  CHECK(with_far.back().is_far);
}

TEST_CASE("a run of several ranks is listed once, as its folder") {
  const TempFolder folder;
  const std::vector<std::string> ranks = write_run_of_ranks(folder.file("out/ranks"));
  const std::vector<RunSummary> runs = list_runs(folder.file("out"), {folder.file("out/ranks")});
  REQUIRE(runs.size() == 1);
  CHECK(runs.front().path == folder.file("out/ranks"));
  CHECK(runs.front().rank_count == 3);
  CHECK(runs.front().step_count == 12);
  // One that was opened by itself stays in the list.
  CHECK(list_runs(folder.file("out"), {ranks[1]}).size() == 2);
}

TEST_CASE("a path is completed as far as what is there agrees") {
  const TempFolder folder;
  std::filesystem::create_directories(folder.file("tiny"));
  std::filesystem::create_directories(folder.file("tiny-2"));
  std::ofstream(folder.file("tiny/run.db")) << "";
  std::ofstream(folder.file("tiny/run.log")) << "";
  const std::vector<std::string> both = completions_of(folder.file("ti"));
  CHECK(both == std::vector<std::string>{folder.file("tiny-2/"), folder.file("tiny/")});
  CHECK(completed(folder.file("ti"), both) == folder.file("tiny"));
  const std::vector<std::string> one = completions_of(folder.file("tiny/"));
  CHECK(one == std::vector<std::string>{folder.file("tiny/run.db")});
  CHECK(completed(folder.file("tiny/"), one) == folder.file("tiny/run.db"));
  CHECK(completions_of("/no such folder/x").empty());
  CHECK(completed("/no such folder/x", {}) == "/no such folder/x");
}

}  // namespace sluice::gui
