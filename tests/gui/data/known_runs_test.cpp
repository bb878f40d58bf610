#include "gui/data/known_runs.h"

#include <algorithm>

#include "gui/data/run_path.h"
#include "tests/gui/data/feed_fixture.h"
#include "tests/gui/data/run_of_ranks.h"

namespace sluice::gui {

TEST_CASE("live runs are found, and which of those opened before are gone") {
  const TempFolder folder;
  const std::string path = folder.file("run.db");
  auto writer = require_ok(rundb::Writer::create(path, rundb::IfExists::refuse));
  const KnownRuns known = look_for_runs({path, folder.file("gone.db")});
  CHECK(std::ranges::count(known.live, std::filesystem::canonical(path).string()) == 1);
  CHECK(known.gone == std::set<std::string>{folder.file("gone.db")});
  require_ok(writer->close());
}

TEST_CASE("the folder of ranks that are live stands in front of them") {
  const TempFolder folder;
  const std::vector<std::string> ranks = write_run_of_ranks(folder.file("out"));
  const auto writer = require_ok(rundb::Writer::open_append(ranks[1], 12));
  const std::vector<std::string> live = look_for_runs({}).live;
  const auto at = std::ranges::find(live, std::filesystem::canonical(folder.file("out")).string());
  REQUIRE(at != live.end());
  REQUIRE(at + 1 != live.end());
  CHECK(*(at + 1) == std::filesystem::canonical(ranks[1]).string());
  CHECK(look_at_path(folder.file("out")).rank_count == 3);
  require_ok(writer->close());
}

TEST_CASE("a typed path is a file, or it is none") {
  const TempFolder folder;
  std::ofstream(folder.file("run.db")) << "text";
  CHECK(look_at_path(folder.file("run.db")).is_file);
  CHECK_FALSE(look_at_path(folder.file("none.db")).is_file);
  CHECK_FALSE(look_at_path(std::filesystem::path(folder.file("run.db")).parent_path()).is_file);
  CHECK(look_at_path("").path.empty());
}

TEST_CASE("a path from the working folder gets the whole way, without dots") {
  const std::string here = std::filesystem::current_path().string();
  CHECK(absolute_path("out/./tiny/../run.db") == here + "/out/run.db");
  CHECK(absolute_path("/a//b") == "/a/b");
  CHECK(file_name("/a/b.db") == "b.db");
}

}  // namespace sluice::gui
