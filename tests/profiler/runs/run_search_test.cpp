#include "profiler/runs/run_search.h"

#include <fstream>

#include "tests/profiler/runs/made_runs.h"

namespace sluice::runs {
namespace {

using Paths = std::vector<std::string>;

void touch(const std::string& path) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path) << "text";
}

}  // namespace

TEST_CASE("databases are found as deep as is asked, and deeper folders are said") {
  const TempFolder folder;
  touch(folder.file("out/b/run.db"));
  touch(folder.file("out/a.db"));
  touch(folder.file("out/a.db-wal"));
  touch(folder.file("out/b/c/d/run.db"));
  const FoundRuns two = runs_below(folder.file("out"), {.folders_below = 2});
  CHECK(two.paths == Paths{folder.file("out/a.db"), folder.file("out/b/run.db")});
  CHECK_FALSE(two.is_whole);
  const FoundRuns three = runs_below(folder.file("out"), {.folders_below = 3});
  CHECK(three.paths.size() == 3);
  CHECK(three.is_whole);
}

TEST_CASE("a run of several ranks is its folder, or each database") {
  const TempFolder folder;
  for (const char* rank : {"rank-0", "rank-1"})
    touch(folder.file(std::string("out/four/") + rank + "/run.db"));
  CHECK(runs_below(folder.file("out")).paths == Paths{folder.file("out/four")});
  CHECK(runs_below(folder.file("out"), {.ranks = RanksAs::each}).paths.size() == 2);
  CHECK(database_of_run(folder.file("out/four")) == folder.file("out/four/rank-0/run.db"));
}

TEST_CASE("a listing ends at its limits and says so") {
  const TempFolder folder;
  for (int i = 0; i < 20; ++i) touch(folder.file("out/" + std::to_string(i) + ".db"));
  const FoundRuns few = runs_below(folder.file("out"), {.found_max = 5});
  CHECK(few.paths.size() == 5);
  CHECK_FALSE(few.is_whole);
  const FoundRuns looked = runs_below(folder.file("out"), {.entries_max = 7});
  CHECK(looked.paths.size() == 7);
  CHECK_FALSE(looked.is_whole);
  CHECK(runs_below(folder.file("out"), {.stops = [] { return true; }}).paths.empty());
}

TEST_CASE("a link to a folder is followed or passed by, and a circle of them ends") {
  const TempFolder folder;
  touch(folder.file("elsewhere/run.db"));
  std::filesystem::create_directories(folder.file("out"));
  std::filesystem::create_directory_symlink(folder.file("elsewhere"), folder.file("out/link"));
  std::filesystem::create_directory_symlink(folder.file("out"), folder.file("out/self"));
  const FoundRuns found = require_ok(runs_of({folder.file("out")}));
  CHECK(found.paths == Paths{folder.file("out/link/run.db")});
  CHECK(runs_below(folder.file("out"), {.links = FolderLinks::pass_by}).paths.empty());
}

TEST_CASE("a run that is named twice is there once, and a path to nothing is refused") {
  const TempFolder folder;
  touch(folder.file("out/run.db"));
  const FoundRuns found =
      require_ok(runs_of({folder.file("out/run.db"), folder.file("out"), folder.file("out/.")}));
  CHECK(found.paths == Paths{folder.file("out/run.db")});
  const auto missing = runs_of({folder.file("none")});
  REQUIRE_FALSE(missing.ok());
  CHECK(missing.error().code() == ErrorCode::not_found);
}

}  // namespace sluice::runs
