#include "core/control/control_server.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <thread>

#include "core/control/control_client.h"
#include "core/control/socket_address.h"
#include "tests/core/control/served_run.h"

namespace sluice::control {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kLong{5000};

Request set_of(std::vector<std::string> settings) {
  Request request;
  request.kind = RequestKind::set;
  request.set.settings = std::move(settings);
  return request;
}

TEST_CASE("a set is answered with the step it is for, taken once, and told about") {
  ServedRun run;
  auto client = run.connect();
  CHECK(client->greeting().run == "made");
  REQUIRE(client->ask({.kind = RequestKind::subscribe}, kLong).ok());
  RunStatus status;
  status.step = 12;
  run.server->tell(status);
  REQUIRE(client->next_event(kLong).value()->status->step == 12);

  const auto answer = client->ask(set_of({"buffers=4"}), kLong);
  REQUIRE(answer.ok());
  CHECK(answer->from_step == 13);
  const Due due = run.server->take_due();
  REQUIRE(due.sets.size() == 1);
  CHECK(due.sets[0].change == answer->change);
  CHECK(due.sets[0].set.settings == std::vector<std::string>{"buffers=4"});
  CHECK(run.server->take_due().sets.empty());

  ChangeEvent event;
  event.change = answer->change;
  event.step = 13;
  run.server->tell(event);
  const auto told = client->next_event(kLong).value();
  REQUIRE(told->change_event);
  CHECK(told->change_event->step == 13);
}

TEST_CASE("what the run would refuse is refused at once, with what waits taken into account") {
  ServedRun run;
  auto client = run.connect();
  const auto refused = client->ask(set_of({"buffers=400"}), kLong);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().message() == "buffers=400 is refused");
  REQUIRE(client->ask(set_of({"buffers=4"}), kLong).ok());
  REQUIRE(client->ask(set_of({"density=0.1"}), kLong).ok());
  CHECK(run.last_waiting() == std::vector<std::string>{"buffers=4"});
  CHECK(run.server->take_due().sets.size() == 2);
  Request watched = set_of({"buffers=5"});
  watched.set.revert_if = "steptime>+5%";
  CHECK(client->ask(watched, kLong).error().message().find("did you mean 'step_time'?") !=
        std::string::npos);
}

TEST_CASE("the run is told when somebody begins to follow it and when the last one has gone") {
  ServedRun run;
  const auto wait_for = [&](const std::vector<bool>& told) {  // ends, or hangs
    while (run.watched() != told) std::this_thread::yield();
  };
  auto asks = run.connect();
  REQUIRE(asks->ask({.kind = RequestKind::status}, kLong).ok());
  auto first = run.connect();
  REQUIRE(first->ask({.kind = RequestKind::subscribe}, kLong).ok());
  wait_for({true});
  auto second = run.connect();
  REQUIRE(second->ask({.kind = RequestKind::subscribe}, kLong).ok());
  first.reset();
  REQUIRE(second->ask({.kind = RequestKind::status}, kLong).ok());
  second.reset();
  wait_for({true, false});
  auto third = run.connect();
  REQUIRE(third->ask({.kind = RequestKind::subscribe}, kLong).ok());
  wait_for({true, false, true});
}

TEST_CASE("a stop waits for nothing, and is not taken back") {
  ServedRun run;
  auto client = run.connect();
  REQUIRE(client->ask({.kind = RequestKind::stop}, kLong).ok());
  CHECK(run.server->stop_is_asked());
  CHECK(run.server->take_due().sets.empty());
  CHECK(run.server->stop_is_asked());  // also of who asks later
}

TEST_CASE("the run is told who asks for a snapshot or a stop, and not of what is refused") {
  ServedRun run;
  auto client = run.connect();
  REQUIRE(client->ask({.kind = RequestKind::snapshot, .who = "mcp:agent"}, kLong).ok());
  REQUIRE(client->ask({.kind = RequestKind::stop}, kLong).ok());
  const std::string longer(300, 'x');
  const auto refused = client->ask({.kind = RequestKind::stop, .who = longer}, kLong);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().message() == "'who' has 300 bytes; 200 are allowed");
  CHECK(run.asked() == std::vector<std::string>{"snapshot by mcp:agent", "stop by user"});
}

TEST_CASE("of sets that wait the last one of each knob is kept, and those before it are told") {
  ServedRun run;
  auto client = run.connect();
  REQUIRE(client->ask({.kind = RequestKind::subscribe}, kLong).ok());
  constexpr int kSets = 3000;  // more than may wait of anything
  std::int64_t last = 0;
  for (int i = 0; i < kSets; ++i) {
    const auto answer = client->ask(set_of({"buffers=" + std::to_string(1 + i % 5)}), kLong);
    REQUIRE(answer.ok());
    last = answer->change;
    // What is checked with a set does not grow with those that wait.
    REQUIRE(run.last_waiting().size() <= 1);
  }
  REQUIRE(client->ask(set_of({"density=0.1", "prefetch=false"}), kLong).ok());
  REQUIRE(client->ask(set_of({"density=0.2"}), kLong).ok());
  const Due due = run.server->take_due();
  REQUIRE(due.sets.size() == 3);
  CHECK(due.sets[0].change == last);
  CHECK(due.sets[1].set.settings == std::vector<std::string>{"prefetch=false"});
  CHECK(due.sets[2].set.settings == std::vector<std::string>{"density=0.2"});
  for (int i = 0; i + 1 < kSets; ++i) {
    const auto told = client->next_event(kLong).value();
    REQUIRE(told);
    REQUIRE(told->change_event);
    REQUIRE(told->change_event->change == last - kSets + 1 + i);
    REQUIRE(told->change_event->state == ChangeState::superseded);
    REQUIRE(told->change_event->message == "a later change (user) turns the same knobs");
  }
}

TEST_CASE("the socket is its owner's only, and gone when the run is") {
  ServedRun run;
  struct stat there{};
  REQUIRE(stat(run.path.c_str(), &there) == 0);
  CHECK((there.st_mode & 0777) == 0600);
  auto client = run.connect();
  REQUIRE(client->ask({.kind = RequestKind::subscribe}, kLong).ok());
  REQUIRE(client->ask(set_of({"buffers=4"}), kLong).ok());
  run.server->close("done");
  const auto refused = client->next_event(kLong).value();
  REQUIRE(refused->change_event);
  CHECK(refused->change_event->state == ChangeState::refused);
  CHECK(client->next_event(kLong).value()->is_end);
  CHECK(client->next_event(kLong).error().code() == ErrorCode::cancelled);
  CHECK_FALSE(std::filesystem::exists(run.path));
  CHECK(ControlClient::connect(run.path, kLong).error().code() == ErrorCode::not_found);
}

TEST_CASE("a socket that a killed run left is replaced; one that lives, or a file, is not") {
  ServedRun run;
  CHECK(run.start_another().error().code() == ErrorCode::busy);
  run.server->close("");
  {  // bound and left, as by kill -9
    const auto address = socket_address(run.path);
    REQUIRE(address.ok());
    const Descriptor stale(socket(AF_UNIX, SOCK_STREAM, 0));
    REQUIRE(bind(stale.get(), reinterpret_cast<const sockaddr*>(&address->address),
                 address->size_bytes) == 0);
  }
  REQUIRE(std::filesystem::exists(run.path));
  {
    const auto again = run.start_another();
    REQUIRE(again.ok());
    CHECK(ControlClient::connect(run.path, kLong).ok());
  }
  std::ofstream(run.path) << "precious";
  const auto refused = run.start_another();
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().message().find("is no socket") != std::string::npos);
  CHECK(std::filesystem::file_size(run.path) == 8);
}

TEST_CASE("a path longer than a socket's address may have works") {
  const std::filesystem::path deep =
      std::filesystem::temp_directory_path() / ("sluice-deep-" + std::to_string(getpid()));
  const std::filesystem::path folder = deep / std::string(80, 'a') / std::string(80, 'b');
  std::filesystem::create_directories(folder);
  {
    ServedRun run(folder.string(), "run.db.socket");
    CHECK(run.connect()->ask({.kind = RequestKind::knobs}, kLong).value().knobs.size() == 1);
  }
  std::filesystem::remove_all(deep);
}

TEST_CASE("snapshots that wait together are told apart, and those of a run that ends are refused") {
  ServedRun run;
  const auto client = run.connect();
  REQUIRE(client->ask({.kind = RequestKind::subscribe}, kLong).ok());
  const auto first = client->ask({.kind = RequestKind::snapshot}, kLong);
  const auto second = client->ask({.kind = RequestKind::snapshot}, kLong);
  REQUIRE(first.ok());
  REQUIRE(second.ok());
  CHECK(run.server->take_due().snapshots == std::vector{first->snapshot, second->snapshot});
  CHECK(run.server->take_due().snapshots.empty());
  run.server->tell(SnapshotEvent{second->snapshot, true, 120, "/runs/step-000120", 4096, ""});
  const auto told = client->next_event(kLong);
  REQUIRE(told.ok());
  REQUIRE((*told)->snapshot_event);
  CHECK((*told)->snapshot_event->snapshot == second->snapshot);
  CHECK((*told)->snapshot_event->is_kept);
  CHECK((*told)->snapshot_event->step == 120);
  CHECK((*told)->snapshot_event->path == "/runs/step-000120");
  CHECK((*told)->snapshot_event->size_bytes == 4096);
  const auto third = client->ask({.kind = RequestKind::snapshot}, kLong);
  REQUIRE(third.ok());
  run.server->close("over");
  const auto refused = client->next_event(kLong);
  REQUIRE(refused.ok());
  REQUIRE((*refused)->snapshot_event);
  CHECK((*refused)->snapshot_event->snapshot == third->snapshot);
  CHECK_FALSE((*refused)->snapshot_event->is_kept);
}

TEST_CASE("another user is refused") {
  if (getuid() != 0) {
    WARN("skipped: only root can become another user");
    return;
  }
  ServedRun run;
  // Only the owner may open it; that somebody else is told apart as well is seen where he may.
  REQUIRE(chmod(run.path.c_str(), 0666) == 0);
  REQUIRE(chmod(std::filesystem::path(run.path).parent_path().c_str(), 0755) == 0);
  const pid_t child = fork();
  if (child == 0) {
    if (setgid(65534) != 0 || setuid(65534) != 0) _exit(3);
    const auto client = ControlClient::connect(run.path, kLong);
    if (client.ok()) _exit(1);
    _exit(client.error().message().find("belongs to user 0") != std::string::npos ? 0 : 2);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WEXITSTATUS(status) == 0);
}

}  // namespace
}  // namespace sluice::control
