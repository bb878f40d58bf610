// What others see of a recording that is live, is killed, or runs out of disk.

#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <random>
#include <thread>

#include "tests/skip.h"
#include "tests/storage/rundb/rundb_fixture.h"

namespace sluice::rundb {
namespace {

constexpr std::int64_t kSpansPerStep = 300;

// Steps that do not have all their spans, and spans without a step: none, if batches are whole.
constexpr const char* kCountPartialBatches =
    "SELECT (SELECT count(*) FROM step WHERE tokens != "
    "(SELECT count(*) FROM span WHERE step_id = step.id)) + "
    "(SELECT count(*) FROM span WHERE step_id NOT IN (SELECT id FROM step))";

TEST_CASE("a reader of a live file sees whole batches only") {
  const TempFolder folder;
  const std::string path = folder.file("run.db");
  auto writer = require_ok(Writer::create(path, IfExists::refuse));
  auto reader = require_ok(Reader::open(path));
  constexpr int kSteps = 60;
  std::atomic<bool> all_written{true};
  std::atomic<bool> done{false};
  std::thread recording([&] {
    for (int step = 0; step < kSteps; ++step)
      if (!writer->append(whole_step(*writer, step, kSpansPerStep)).ok()) all_written = false;
    done = true;
  });
  std::int64_t polls = 0;
  std::int64_t partial = 0;
  do {
    partial += std::stoll(table_of(*reader, kCountPartialBatches));
    const auto snapshot = require_ok(reader->snapshot());
    const std::string before = table_of(*reader, "SELECT count(*) FROM step");
    std::this_thread::yield();
    partial += table_of(*reader, "SELECT count(*) FROM step") != before;
    ++polls;
  } while (!done);
  recording.join();
  REQUIRE(all_written);
  REQUIRE(polls > 0);
  REQUIRE(partial == 0);
  REQUIRE(require_ok(reader->steps()).size() == kSteps);
}

[[noreturn]] void record_until_killed(const std::string& path, int ready) {
  auto writer = Writer::create(path, IfExists::refuse);
  for (std::int64_t step = 0; writer.ok(); ++step) {
    if (!(*writer)->append(whole_step(**writer, step, kSpansPerStep)).ok()) break;
    if (step == 0 && ::write(ready, "1", 1) != 1) break;
  }
  ::_exit(1);
}

TEST_CASE("after kill -9 the file opens, is sound, and holds whole batches") {
  const TempFolder folder;
  std::minstd_rand random(20240607);
  for (int round = 0; round < 10; ++round) {
    const std::string path = folder.file("run" + std::to_string(round) + ".db");
    int ready[2];
    REQUIRE(::pipe(ready) == 0);
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) record_until_killed(path, ready[1]);
    ::close(ready[1]);
    char byte = 0;
    REQUIRE(::read(ready[0], &byte, 1) == 1);  // the first batch is in
    ::close(ready[0]);
    ::usleep(static_cast<useconds_t>(random() % 30'000));
    REQUIRE(::kill(child, SIGKILL) == 0);
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(WIFSIGNALED(status));

    std::size_t step_count = 0;
    {
      auto reader = require_ok(Reader::open(path));
      REQUIRE(table_of(*reader, "PRAGMA integrity_check") == "ok\n");
      REQUIRE(table_of(*reader, kCountPartialBatches) == "0\n");
      step_count = require_ok(reader->steps()).size();
      REQUIRE(step_count >= 1);
    }
    // And the run can go on in it: the dead writer's lock keeps nobody out.
    auto writer = require_ok(Writer::open_append(path, static_cast<std::int64_t>(step_count)));
    require_ok(
        writer->append(whole_step(*writer, static_cast<std::int64_t>(step_count), kSpansPerStep)));
    require_ok(writer->close());
  }
}

// A file system of a few MB that vanishes with this thread's mount namespace.
bool mount_small_disk(const std::string& folder) {
  return ::unshare(CLONE_NEWNS) == 0 &&
         ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         ::mount("tmpfs", folder.c_str(), "tmpfs", 0, "size=3m") == 0;
}

void record_until_disk_is_full(const std::string& path) {
  auto writer = require_ok(Writer::create(path, IfExists::refuse));
  std::int64_t step = 0;
  Status status;
  while (status.ok() && step < 10'000)
    status = writer->append(whole_step(*writer, step++, kSpansPerStep));
  REQUIRE_FALSE(status.ok());
  REQUIRE(status.error().code() == ErrorCode::no_space);
  REQUIRE_THAT(status.error().message(), Catch::Matchers::Contains(path));
  const std::int64_t written = step - 1;

  // It has stopped, and says the same again.
  const Status again = writer->append(whole_step(*writer, step, 1));
  REQUIRE_FALSE(again.ok());
  REQUIRE(again.error().message() == status.error().message());
  const Status closed = writer->close();
  REQUIRE_FALSE(closed.ok());
  REQUIRE(closed.error().message() == status.error().message());
  writer.reset();

  auto reader = require_ok(Reader::open(path));
  REQUIRE(table_of(*reader, "PRAGMA integrity_check") == "ok\n");
  REQUIRE(table_of(*reader, kCountPartialBatches) == "0\n");
  REQUIRE(require_ok(reader->steps()).size() == static_cast<std::size_t>(written));
  const auto losses = require_ok(reader->losses());
  REQUIRE(losses.size() == 1);  // it fits where the batch that was undone had been
  REQUIRE(losses[0].name == "recording_stopped");
  REQUIRE_THAT(losses[0].description, Catch::Matchers::Contains("full"));
}

TEST_CASE("a full disk stops the recording with a reason and leaves what was written") {
  const TempFolder folder;
  std::filesystem::create_directory(folder.file("small"));
  std::string skipped_because;
  std::thread([&] {  // the namespace is this thread's alone
    if (!mount_small_disk(folder.file("small"))) {
      skipped_because = std::string("cannot mount a tmpfs: ") + std::strerror(errno);
      return;
    }
    record_until_disk_is_full(folder.file("small") + "/run.db");
  })
      .join();
  if (!skipped_because.empty()) skip_test(skipped_because);
}

}  // namespace
}  // namespace sluice::rundb
