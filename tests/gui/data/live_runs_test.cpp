#include "gui/data/live_runs.h"

#include <algorithm>

#include "tests/gui/data/feed_fixture.h"

namespace sluice::gui {

TEST_CASE("a database is live as long as its writer holds it") {
  const TempFolder folder;
  const std::string path = folder.file("run.db");
  CHECK_FALSE(is_being_recorded(path));
  {
    auto writer = require_ok(rundb::Writer::create(path, rundb::IfExists::refuse));
    CHECK(is_being_recorded(path));
    const std::vector<std::string> live = live_runs();
    CHECK(std::ranges::count(live, std::filesystem::canonical(path).string()) == 1);
    require_ok(writer->close());
  }
  CHECK_FALSE(is_being_recorded(path));
  CHECK(std::ranges::count(live_runs(), path) == 0);
}

TEST_CASE("a lock file that nobody holds, as after kill -9, is no live run") {
  const TempFolder folder;
  const std::string path = folder.file("run.db");
  std::ofstream(path + "-writer") << "left behind";
  CHECK_FALSE(is_being_recorded(path));
}

}  // namespace sluice::gui
