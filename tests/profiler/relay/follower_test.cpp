// Both ends together, over pipes; the line is a shell that sends what was kept of a stream.

#include "profiler/relay/follower.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <fstream>
#include <thread>

#include "profiler/relay/relay.h"
#include "profiler/relay/turns.h"
#include "storage/rundb/copy_writer.h"
#include "tests/profiler/relay/sent_stream.h"
#include "tests/storage/rundb/rundb_fixture.h"

namespace sluice::relay {
namespace {

using Catch::Matchers::Contains;
using rundb::TempFolder;

std::unique_ptr<rundb::Writer> made_run(const std::string& path, int steps) {
  auto writer = rundb::require_ok(rundb::Writer::create(path, rundb::IfExists::refuse));
  for (int step = 0; step < steps; ++step)
    rundb::require_ok(writer->append(rundb::whole_step(*writer, step, 20)));
  return writer;
}

std::string kept(const TempFolder& folder, const std::string& name, const std::string& bytes) {
  std::ofstream(folder.file(name), std::ios::binary) << bytes;
  return folder.file(name);
}

FollowOptions options_for(const TempFolder& folder, const std::string& script) {
  return {.command = {"/bin/sh", "-c", script},
          .copy = folder.file("copy.db"),
          .errors = ErrorOutput::kept,
          .first_pause = std::chrono::milliseconds(1)};
}

std::string count_of(const std::string& path, const std::string& table) {
  auto reader = rundb::require_ok(rundb::Reader::open(path));
  return rundb::table_of(*reader, "SELECT count(*) FROM " + table);
}

TEST_CASE("a finished run comes over as a whole, and the follower ends") {
  const TempFolder folder;
  rundb::require_ok(made_run(folder.file("run.db"), 12)->close());
  const std::string stream = kept(folder, "stream", sent_by_relay(folder.file("run.db"), {}));
  FollowState last;
  FollowOptions options = options_for(folder, "cat " + stream);
  options.tell = [&last](const FollowState& state) { last = state; };
  rundb::require_ok(follow_run(options));
  CHECK(last.spans == 240);
  CHECK(last.has_copy);
  CHECK_FALSE(last.is_live);
  CHECK(count_of(folder.file("copy.db"), "span") == "240\n");
  CHECK(count_of(folder.file("copy.db"), "step") == "12\n");
}

TEST_CASE("a line that is cut is tried again, and goes on where it was") {
  const TempFolder folder;
  rundb::require_ok(made_run(folder.file("run.db"), 30)->close());
  auto reader = rundb::require_ok(rundb::Reader::open(folder.file("run.db")));
  // The first connection: a turn of 100 operations, and half of the next one.
  rundb::RecordTail tail(*reader, 100);
  FrameWriter frames;
  std::string first = stream_header();
  rundb::CopyCursor cursor;
  std::size_t whole_size = 0;
  for (int turn = 0; turn < 2; ++turn) {
    whole_size = first.size();
    const rundb::CopyTurn taken = rundb::require_ok(tail.next(cursor));
    if (turn == 0) cursor = taken.cursor;
    rundb::require_ok(put_turn({.turn = taken, .is_live = true}, frames, first));
  }
  kept(folder, "first", first.substr(0, (whole_size + first.size()) / 2));
  kept(folder, "second", sent_by_relay(folder.file("run.db"), cursor));
  FollowOptions options = options_for(
      folder, fmt::format("cd {}; if [ -e was ]; then cat second; else touch was; cat first; "
                          "echo the line is down >&2; exit 3; fi",
                          folder.file("")));
  std::vector<std::string> cuts;
  options.tell = [&cuts](const FollowState& state) {
    if (state.line == LineState::cut && cuts.empty()) cuts.push_back(state.why);
  };
  rundb::require_ok(follow_run(options));
  CHECK(cuts == std::vector<std::string>{"the line is down"});
  CHECK(count_of(folder.file("copy.db"), "span") == "600\n");
  CHECK(count_of(folder.file("copy.db"), "step") == "30\n");
}

TEST_CASE("a follower that is stopped leaves a sound copy of what came") {
  const TempFolder folder;
  const auto writer = made_run(folder.file("run.db"), 5);
  const std::string stream = kept(folder, "stream", sent_by_relay(folder.file("run.db"), {}));
  FollowOptions options = options_for(folder, "cat " + stream + "; exec sleep 1000");
  std::atomic<bool> is_here = false;
  options.tell = [&is_here](const FollowState& state) { is_here = state.spans == 100; };
  options.stops = [&is_here] { return is_here.load(); };
  rundb::require_ok(follow_run(options));
  CHECK(count_of(folder.file("copy.db"), "span") == "100\n");
  CHECK_FALSE(std::filesystem::exists(folder.file("copy.db-writer")));
}

TEST_CASE("what cannot be followed ends at once, with the reason") {
  const TempFolder folder;
  const auto refusal = [&](const std::string& script) {
    const Status status = follow_run(options_for(folder, script));
    REQUIRE_FALSE(status.ok());
    CHECK_FALSE(std::filesystem::exists(folder.file("copy.db")));
    return status.error();
  };
  Error error = refusal("echo ssh: no such host >&2; exit 255");
  CHECK(error.code() == ErrorCode::config);
  CHECK_THAT(error.message(), Contains("ssh: no such host") && Contains("no run has come"));
  error = refusal("echo sh: sluice: not found >&2; exit 127");
  CHECK_THAT(error.message(), Contains("sluice: not found") && Contains("--far-program"));
  error = refusal("echo Welcome; exec sleep 1000");
  CHECK(error.code() == ErrorCode::corrupt);
  CHECK_THAT(error.message(), Contains("Welcome"));
  const std::string stream = kept(folder, "stream", sent_by_relay(folder.file("none.db"), {}));
  error = refusal("cat " + stream + "; exec sleep 1000");
  CHECK(error.code() == ErrorCode::not_found);
  CHECK_THAT(error.message(), Contains("at the other end") && Contains("none.db"));
  FollowOptions missing = options_for(folder, "");
  missing.command = {"/no/such/program"};
  const Status status = follow_run(missing);
  REQUIRE_FALSE(status.ok());
  CHECK_THAT(status.error().message(), Contains("no such program"));
}

TEST_CASE("a program that has ended takes nothing, and ends nobody else") {
  LineProcess line =
      rundb::require_ok(LineProcess::start({"/bin/sh", "-c", "exit 3"}, ErrorOutput::kept));
  std::string said;
  while (line.hear(std::chrono::milliseconds(100), said) != LineProcess::Heard::end) {
  }
  // The kernel closes what the program had in an order of its own.
  while (line.send("a cursor")) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  CHECK(line.finish() == 3);
  CHECK(said.empty());
}

TEST_CASE("a copy of another recording is kept, unless it may be replaced") {
  const TempFolder folder;
  rundb::require_ok(made_run(folder.file("one.db"), 3)->close());
  rundb::require_ok(made_run(folder.file("two.db"), 4)->close());
  const std::string one = kept(folder, "one", sent_by_relay(folder.file("one.db"), {}));
  const std::string two = kept(folder, "two", sent_by_relay(folder.file("two.db"), {}));
  rundb::require_ok(follow_run(options_for(folder, "cat " + one)));
  FollowOptions options = options_for(folder, "cat " + two);
  const Status status = follow_run(options);
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().code() == ErrorCode::config);
  CHECK(count_of(folder.file("copy.db"), "step") == "3\n");
  options.replaces_others = true;
  rundb::require_ok(follow_run(options));
  CHECK(count_of(folder.file("copy.db"), "step") == "4\n");
}

TEST_CASE("a far end that goes on with another run than it began is refused") {
  const TempFolder folder;
  rundb::require_ok(made_run(folder.file("run.db"), 3)->close());
  auto reader = rundb::require_ok(rundb::Reader::open(folder.file("run.db")));
  rundb::CopyTurn turn = rundb::require_ok(rundb::RecordTail(*reader).next({}));
  FrameWriter frames;
  std::string bytes = stream_header();
  turn.begins_anew = false;
  rundb::require_ok(put_turn({.turn = turn, .is_live = true}, frames, bytes));
  const Status status = follow_run(options_for(folder, "cat " + kept(folder, "stream", bytes)));
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().code() == ErrorCode::corrupt);
  CHECK_THAT(status.error().message(), Contains("another recording"));
}

TEST_CASE("the far end tells whoever sends no cursor what is wrong") {
  const TempFolder folder;
  rundb::require_ok(made_run(folder.file("run.db"), 1)->close());
  const int in = ::open(kept(folder, "in", "GET / HTTP/1.0\r\n\r\n").c_str(), O_RDONLY);
  const int out = ::open(folder.file("out").c_str(), O_WRONLY | O_CREAT, 0600);
  const Status status = serve_relay(folder.file("run.db"), in, out);
  ::close(in);
  ::close(out);
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().code() == ErrorCode::corrupt);
  std::ifstream file(folder.file("out"), std::ios::binary);
  const std::string said((std::istreambuf_iterator<char>(file)), {});
  CHECK_THAT(said, Contains("GET / HTTP/1.0"));
}

}  // namespace
}  // namespace sluice::relay
