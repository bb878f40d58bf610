#include "gui/data/run_feed.h"

#include "gui/data/run_snapshot.h"
#include "gui/data/span_lookup.h"
#include "gui/data/span_scan.h"
#include "gui/data/timeline_window.h"
#include "gui/data/verdict.h"
#include "tests/gui/data/feed_fixture.h"

namespace sluice::gui {
namespace {

bool has_problem(const RunFeed& feed, const std::string& words) {
  return comes_true([&] {
    const auto run = feed.run();
    return run != nullptr && run->problem.find(words) != std::string::npos;
  });
}

bool has_steps(const RunFeed& feed, std::size_t count) {
  return comes_true([&] {
    const auto run = feed.run();
    return run != nullptr && run->problem.empty() && run->steps != nullptr &&
           run->steps->size() == count;
  });
}

std::unique_ptr<rundb::Writer> begun_run(const std::string& path, std::int64_t step_count) {
  auto writer = require_ok(rundb::Writer::create(path, rundb::IfExists::refuse));
  require_ok(writer->write_facts({.meta = {{"name", "live"}}}));
  for (std::int64_t s = 0; s < step_count; ++s)
    require_ok(writer->append(rundb::whole_step(*writer, s, 10)));
  return writer;
}

}  // namespace

TEST_CASE("a finished run is there as a whole, with all that is made of it") {
  const TempFolder folder;
  write_made_run(folder.file("run.db"), {.step_count = 4});
  RunFeed feed(folder.file("run.db"), quick());
  REQUIRE(has_steps(feed, 4));
  CHECK_FALSE(feed.run()->is_live);
  CHECK(feed.run()->begin_ts == 0);
  CHECK(feed.run()->end_ts == 400 * kMs);
  CHECK(feed.run()->span_count == 36);
  feed.want_timeline({0, 400 * kMs, 100'000});
  feed.search("update");
  CHECK(comes_true([&] { return feed.timeline() != nullptr; }));
  CHECK(comes_true([&] { return feed.minimap() != nullptr; }));
  CHECK(comes_true([&] { return feed.verdict() != nullptr && !feed.verdict()->causes.empty(); }));
  CHECK(comes_true(
      [&] { return feed.statistics() != nullptr && feed.statistics()->seen_count == 36; }));
  CHECK(comes_true([&] { return feed.found() != nullptr && feed.found()->spans.size() == 8; }));
  feed.choose_span(feed.found()->spans[0].span_id);
  CHECK(comes_true([&] { return feed.chosen() != nullptr; }));
  feed.choose_span(0);
  CHECK(comes_true([&] { return feed.chosen() == nullptr; }));
}

TEST_CASE("a live run is followed: steps, spans and the drawn window grow with it") {
  const TempFolder folder;
  auto writer = begun_run(folder.file("run.db"), 2);
  RunFeed feed(folder.file("run.db"), quick());
  REQUIRE(has_steps(feed, 2));
  CHECK(comes_true([&] { return feed.run()->is_live; }));
  feed.want_timeline({0, 10'000, 1});
  for (std::int64_t s = 2; s < 5; ++s) {
    require_ok(writer->append(rundb::whole_step(*writer, s, 10)));
    REQUIRE(has_steps(feed, static_cast<std::size_t>(s + 1)));
  }
  CHECK(feed.run()->validations->empty());
  require_ok(writer->append({.validations = {{.ts = 5000, .step_id = 4, .loss = 2.5}}}));
  CHECK(comes_true([&] { return feed.run()->validations->size() == 1; }));
  CHECK(feed.run()->validations->front().loss == 2.5);
  CHECK(comes_true([&] {
    const auto window = feed.timeline();
    if (window == nullptr) return false;
    std::int64_t count = 0;
    for (const TrackBoxes& track : window->tracks) {
      for (const Box& box : track.boxes) count += box.count;
    }
    return count == 50;
  }));
  CHECK(comes_true([&] { return feed.statistics() && feed.statistics()->seen_count == 50; }));
  require_ok(writer->close());
  writer = nullptr;  // the lock goes with it
  CHECK(comes_true([&] { return !feed.run()->is_live; }));
  CHECK(feed.run()->steps->size() == 5);
}

TEST_CASE("a file that is not there is a problem until it comes") {
  const TempFolder folder;
  RunFeed feed(folder.file("run.db"), quick());
  REQUIRE(has_problem(feed, "there is no such run database"));
  CHECK(feed.run()->facts == nullptr);
  write_made_run(folder.file("run.db"), {});
  CHECK(has_steps(feed, 3));
}

TEST_CASE("foreign, empty and newer files say what they are") {
  const TempFolder folder;
  std::ofstream(folder.file("text.db")) << std::string(5000, 'x');
  std::ofstream(folder.file("empty.db"));
  write_made_run(folder.file("newer.db"), {});
  {
    std::fstream file(folder.file("newer.db"), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(60);  // user_version, in the header of every SQLite file
    file.write("\0\0\x03\xe7", 4);
  }
  RunFeed text(folder.file("text.db"), quick());
  RunFeed empty(folder.file("empty.db"), quick());
  RunFeed newer(folder.file("newer.db"), quick());
  CHECK(has_problem(text, "text.db"));
  CHECK(has_problem(empty, "is empty"));
  CHECK(has_problem(newer, "999"));
}

TEST_CASE("a file that is deleted while it is shown keeps what was read, and says so") {
  const TempFolder folder;
  write_made_run(folder.file("run.db"), {});
  RunFeed feed(folder.file("run.db"), quick());
  REQUIRE(has_steps(feed, 3));
  std::filesystem::remove(folder.file("run.db"));
  REQUIRE(has_problem(feed, "there is no such run database"));
  CHECK(feed.run()->steps->size() == 3);
  CHECK(feed.run()->facts != nullptr);
  write_made_run(folder.file("run.db"), {.step_count = 7});
  CHECK(has_steps(feed, 7));
}

TEST_CASE("a file that is cut while it is shown is a problem, not a crash") {
  const TempFolder folder;
  write_made_run(folder.file("run.db"), {.step_count = 40});
  RunFeed feed(folder.file("run.db"), quick());
  REQUIRE(has_steps(feed, 40));
  REQUIRE(comes_true([&] { return feed.statistics() != nullptr; }));
  std::filesystem::resize_file(folder.file("run.db"), 8192);
  feed.want_timeline({0, 4'000 * kMs, 100'000});
  CHECK(has_problem(feed, "run.db"));
  CHECK(feed.run()->steps->size() == 40);
}

TEST_CASE("a feed can be closed at any moment") {
  const TempFolder folder;
  write_made_run(folder.file("run.db"), {.step_count = 20});
  for (int i = 0; i < 20; ++i) {
    RunFeed feed(folder.file("run.db"), quick());
    feed.want_timeline({0, 100 * kMs, 1000});
    if (i % 2 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(i));
  }
  SUCCEED("none of them hung");
}

}  // namespace sluice::gui
