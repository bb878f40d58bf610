#include "gui/data/opening.h"

#include <cstdlib>

#include "gui/data/run_snapshot.h"
#include "gui/data/span_scan.h"
#include "gui/data/verdict.h"
#include "tests/gui/data/feed_fixture.h"
#include "tests/gui/data/run_of_ranks.h"

namespace sluice::gui {
namespace {

namespace fs = std::filesystem;

// Where merged records go, of this test alone.
struct Cache {
  explicit Cache(const TempFolder& folder) : merged(folder.file("cache/sluice/merged")) {
    ::setenv("XDG_CACHE_HOME", folder.file("cache").c_str(), 1);
  }
  ~Cache() { ::unsetenv("XDG_CACHE_HOME"); }
  bool is_empty() const { return !fs::exists(merged) || fs::is_empty(merged); }
  std::string merged;
};

std::shared_ptr<const Opened> opened(const std::vector<std::string>& paths,
                                     std::shared_ptr<const report::MergedFile> into = nullptr) {
  Opening opening(paths, std::move(into), {}, [] {});
  REQUIRE(comes_true([&] { return opening.result() != nullptr; }));
  return opening.result();
}

void check_refused(const std::vector<std::string>& paths, const std::string& words) {
  const std::string problem = opened(paths)->problem;
  INFO(problem);
  CHECK(problem.find(words) != std::string::npos);
}

}  // namespace

TEST_CASE("a folder of ranks and the databases of all of them are opened as one") {
  const TempFolder folder;
  const Cache cache(folder);
  const std::vector<std::string> ranks = write_run_of_ranks(folder.file("out"));
  {
    const auto by_folder = opened({folder.file("out")});
    REQUIRE(by_folder->problem == "");
    REQUIRE(by_folder->ranks != nullptr);
    CHECK(by_folder->ranks->databases == ranks);
    CHECK(by_folder->ranks->place() == folder.file("out"));
    CHECK_FALSE(by_folder->ranks->was_live);
    CHECK(fs::path(by_folder->database).string().starts_with(cache.merged));
    auto reader = require_ok(rundb::Reader::open(by_folder->database));
    CHECK(require_ok(load_run_facts(*reader)).info.meta_value(analyze::kMergedRanks) == "3");
    // In any order.
    const auto by_name = opened({ranks[2], ranks[0], ranks[1]});
    REQUIRE(by_name->ranks != nullptr);
    CHECK(by_name->ranks->databases == ranks);
    CHECK(by_name->ranks->folder == folder.file("out"));
    CHECK(by_name->database != by_folder->database);
  }
  CHECK(cache.is_empty());
}

TEST_CASE("ranks whose databases lie elsewhere are opened, and are no folder's") {
  const TempFolder folder;
  const Cache cache(folder);
  const std::vector<std::string> ranks = write_made_ranks(folder);
  const auto all = opened(ranks);
  REQUIRE(all->ranks != nullptr);
  CHECK(all->ranks->folder == "");
  CHECK(all->ranks->place() == ranks[0]);
}

TEST_CASE("a database, or the folder that has one, is opened as it is") {
  const TempFolder folder;
  const Cache cache(folder);
  fs::create_directories(folder.file("tiny"));
  write_made_run(folder.file("tiny/run.db"), {});
  CHECK(opened({folder.file("tiny")})->database == folder.file("tiny/run.db"));
  CHECK(opened({folder.file("tiny/run.db")})->ranks == nullptr);
  // Whoever reads it says that it is none.
  CHECK(opened({folder.file("none")})->database == folder.file("none"));
  CHECK_FALSE(fs::exists(cache.merged));
}

TEST_CASE("databases that are not the ranks of one run are refused in words, and leave nothing") {
  const TempFolder folder;
  const Cache cache(folder);
  const std::vector<std::string> ranks = write_run_of_ranks(folder.file("out"));
  const std::vector<std::string> others =
      write_run_of_ranks(folder.file("other"), {.run_id = "another"});
  write_made_run(folder.file("a.db"), {});
  write_made_run(folder.file("b.db"), {});
  check_refused({ranks[0], ranks[1], others[2]}, "records of two runs");
  check_refused({ranks[0], ranks[1], others[2]}, "sluice compare");
  check_refused({folder.file("a.db"), folder.file("b.db")}, "sluice compare");
  check_refused({ranks[0], ranks[2]}, "the record of rank 1 is missing");
  check_refused({folder.file("none.db"), ranks[0]}, "none.db");
  fs::remove_all(folder.file("out/rank-1"));
  check_refused({folder.file("out")}, "the record of rank 1 is missing");
  CHECK(cache.is_empty());
}

TEST_CASE("an opening that nobody waits for leaves nothing") {
  const TempFolder folder;
  const Cache cache(folder);
  write_run_of_ranks(folder.file("out"), {.step_count = 400});
  {
    const Opening opening({folder.file("out")}, nullptr, {}, [] {});
  }
  CHECK(cache.is_empty());
}

TEST_CASE("ranks that are read again take the place of what was read, and the feed shows them") {
  const TempFolder folder;
  const Cache cache(folder);
  const std::vector<std::string> ranks = write_run_of_ranks(folder.file("out"));
  const auto first = opened({folder.file("out")});
  REQUIRE(first->ranks != nullptr);
  RunFeed feed(first->database, quick());
  const auto shows = [&feed](std::size_t steps, std::int64_t spans) {
    return comes_true([&] {
      const auto run = feed.run();
      return run != nullptr && run->steps != nullptr && run->steps->size() == steps &&
             feed.verdict() != nullptr && feed.verdict()->analysis.step_count == steps &&
             feed.statistics() != nullptr && feed.statistics()->seen_count == spans;
    });
  };
  REQUIRE(shows(12, 216));
  write_run_of_ranks(folder.file("out"), {.step_count = 15});
  const auto again = opened(ranks, first->ranks->file);
  REQUIRE(again->problem == "");
  CHECK(again->database == first->database);
  CHECK(shows(15, 270));
  CHECK(feed.run()->problem == "");
}

TEST_CASE("ranks that are being recorded are of an instant, which is said") {
  const TempFolder folder;
  const Cache cache(folder);
  const std::vector<std::string> ranks = write_run_of_ranks(folder.file("out"));
  const auto writer = require_ok(rundb::Writer::open_append(ranks[1], 12));
  const auto live = opened({folder.file("out")});
  REQUIRE(live->ranks != nullptr);
  CHECK(live->ranks->was_live);
  CHECK(live->ranks->read_at.size() == 8);
  require_ok(writer->close());
}

}  // namespace sluice::gui
