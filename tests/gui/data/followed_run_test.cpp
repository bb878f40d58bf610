// A run on a server in the window: an `ssh` that sends what was kept of a stream stands in for it.

#include "gui/data/followed_run.h"

#include <cstdlib>
#include <fstream>

#include "gui/data/opening.h"
#include "storage/rundb/record_tail.h"
#include "tests/gui/data/feed_fixture.h"
#include "tests/profiler/relay/sent_stream.h"

namespace sluice::gui {
namespace {

namespace fs = std::filesystem;

// A cache folder, and a PATH whose ssh is this script.
struct Line {
  Line(const TempFolder& folder, const std::string& script)
      : copies(folder.file("cache/sluice/followed")), path(std::getenv("PATH")) {
    fs::create_directories(folder.file("bin"));
    std::ofstream(folder.file("bin/ssh")) << "#!/bin/sh\n" << script << "\n";
    fs::permissions(folder.file("bin/ssh"), fs::perms::owner_all);
    ::setenv("PATH", (folder.file("bin") + ":" + path).c_str(), 1);
    ::setenv("XDG_CACHE_HOME", folder.file("cache").c_str(), 1);
  }
  ~Line() {
    ::setenv("PATH", path.c_str(), 1);
    ::unsetenv("XDG_CACHE_HOME");
  }
  bool has_no_copy() const { return !fs::exists(copies) || fs::is_empty(copies); }

  const std::string copies;
  const std::string path;
};

// What `sluice relay` sends of a run with so many steps, in a file.
std::string kept_stream(const TempFolder& folder, std::int64_t steps) {
  auto writer = require_ok(rundb::Writer::create(folder.file("far.db"), rundb::IfExists::refuse));
  rundb::Batch batch;
  for (std::int64_t step = 0; step < steps; ++step)
    batch.steps.push_back({.id = step, .ts = step * 1000, .dur = 900});
  require_ok(writer->append(batch));
  require_ok(writer->close());
  writer.reset();  // until then it is being recorded
  std::ofstream(folder.file("stream"), std::ios::binary)
      << relay::sent_by_relay(folder.file("far.db"), {});
  return folder.file("stream");
}

std::shared_ptr<const Opened> opened_far(const std::string& name, FarChoice far = {}) {
  Opening opening({name}, nullptr, std::move(far), [] {});
  CHECK(opening.is_far());
  REQUIRE(comes_true([&] { return opening.result() != nullptr; }));
  return opening.result();
}

}  // namespace

TEST_CASE("a run on a server is opened as its copy, which goes when it is closed") {
  const TempFolder folder;
  const Line line(folder, "cat " + kept_stream(folder, 7));
  {
    const auto opened = opened_far("ssh://ann@trainer/out/tiny/run.db");
    REQUIRE(opened->problem == "");
    REQUIRE(opened->far != nullptr);
    CHECK(opened->far->name() == "ssh://ann@trainer/out/tiny/run.db");
    CHECK(opened->far->host() == "trainer");
    CHECK(fs::path(opened->far->place()).filename() == "run.db");
    CHECK(fs::path(opened->database).string().starts_with(line.copies));
    auto reader = require_ok(rundb::Reader::open(opened->database));
    CHECK(require_ok(reader->steps()).size() == 7);
    // The run was over, so all of it is here.
    REQUIRE(comes_true([&] { return opened->far->line()->is_over; }));
    CHECK(opened->far->words() == "");
  }
  CHECK(line.has_no_copy());
}

TEST_CASE("a copy that was named stays") {
  const TempFolder folder;
  const Line line(folder, "cat " + kept_stream(folder, 3));
  {
    const auto opened = opened_far("ssh://trainer/run.db", {.copy = folder.file("mine.db")});
    REQUIRE(opened->far != nullptr);
    CHECK(opened->database == folder.file("mine.db"));
    CHECK(opened->far->place() == folder.file("mine.db"));
  }
  CHECK(line.has_no_copy());
  CHECK(require_ok(require_ok(rundb::Reader::open(folder.file("mine.db")))->steps()).size() == 3);
}

TEST_CASE("why a run on a server is not there is said") {
  const TempFolder folder;
  const Line line(folder, "echo ssh: trainer: no such host >&2; exit 255");
  const auto check_says = [](const std::string& name, const std::string& words) {
    const std::string problem = opened_far(name)->problem;
    INFO(problem);
    CHECK(problem.find(words) != std::string::npos);
  };
  check_says("ssh://trainer/run.db", "no such host");
  check_says("ssh://-oProxyCommand=x/run.db", "begins with '-'");
  check_says("ssh://trainer", "there is no path");
  CHECK(line.has_no_copy());
}

TEST_CASE("how much is here, and how long nothing was heard, is said") {
  const TempFolder folder;
  auto writer = require_ok(rundb::Writer::create(folder.file("far.db"), rundb::IfExists::refuse));
  for (std::int64_t step = 0; step < 30; ++step)
    require_ok(writer->append(rundb::whole_step(*writer, step, 20)));
  require_ok(writer->close());
  auto reader = require_ok(rundb::Reader::open(folder.file("far.db")));
  const rundb::CopyTurn turn = require_ok(rundb::RecordTail(*reader, 100).next({}));
  std::string first = relay::stream_header();
  relay::FrameWriter frames;
  require_ok(relay::put_turn({.turn = turn, .is_live = true}, frames, first));
  std::ofstream(folder.file("first"), std::ios::binary) << first;
  const Line line(folder, fmt::format("cat {}; exec sleep 1000", folder.file("first")));
  const auto run = require_ok(FollowedRun::begin("ssh://trainer/run.db", {}, [] {}));
  CHECK(comes_true([&] { return run->words() == "16 % here"; }));
  CHECK(comes_true([&] { return run->words() == "behind by 2 s"; }));
}

TEST_CASE("a line that is cut is said until it is there again") {
  const TempFolder folder;
  kept_stream(folder, 5);
  auto reader = require_ok(rundb::Reader::open(folder.file("far.db")));
  const rundb::CopyTurn turn = require_ok(rundb::RecordTail(*reader).next({}));
  std::string first = relay::stream_header();
  relay::FrameWriter frames;
  require_ok(relay::put_turn({.turn = turn, .is_live = true}, frames, first));
  std::ofstream(folder.file("first"), std::ios::binary) << first;
  std::ofstream(folder.file("second"), std::ios::binary)
      << relay::sent_by_relay(folder.file("far.db"), turn.cursor);
  const Line line(folder,
                  fmt::format("cd {}; if [ -e was ]; then while [ ! -e go ]; do sleep 0.02; "
                              "done; cat second; else touch was; cat first; fi",
                              folder.file("")));
  const auto run = require_ok(FollowedRun::begin("ssh://trainer/run.db", {}, [] {}));
  CHECK(comes_true([&] { return run->words() == "cut, trying again"; }));
  CHECK(run->line()->state.has_copy);
  std::ofstream(folder.file("go")) << "go";
  CHECK(comes_true([&] { return run->line()->is_over; }));
  CHECK(run->words() == "");
}

}  // namespace sluice::gui
