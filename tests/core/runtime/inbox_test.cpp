// Notes from other threads: in order, bounded, under both clocks that wait, and never a reason for
// a schedule to be stuck or to hang.

#include "core/runtime/inbox.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

#include "core/runtime/clocks.h"
#include "core/runtime/sync.h"
#include "test_platform.h"

using namespace sluice;
using namespace sluice::runtime;
using namespace sluice::stages;

namespace {

std::unique_ptr<WorkExecutor> posix_executor() {
  auto engine = io::open_io_engine({.kind = io::IoEngineKind::posix});
  REQUIRE(engine.ok());
  auto made = WorkExecutor::make(std::move(*engine), {.lanes = {}, .host_worker_count = 1});
  REQUIRE(made.ok());
  return std::move(*made);
}

std::unique_ptr<Inbox<int>> inbox_of(Runtime& runtime, std::size_t capacity) {
  auto inbox = Inbox<int>::make(runtime, capacity);
  REQUIRE(inbox.ok());
  return std::move(*inbox);
}

// Until the inbox is closed.
Task<Status> take_all(Inbox<int>& inbox, std::vector<int>& taken) {
  while (true) {
    Result<std::optional<int>> next = co_await inbox.next("the other thread");
    CO_RETURN_IF_ERROR(next);
    if (!*next) co_return ok_status();
    taken.push_back(**next);
  }
}

Task<Status> fail_after(Runtime& runtime, Inbox<int>& inbox, int note) {
  Result<std::optional<int>> next = co_await inbox.next("a note that fails it");
  CO_RETURN_IF_ERROR(next);
  if (**next == note) runtime.fail(make_error(ErrorCode::io, "the drive is gone"));
  co_return ok_status();
}

}  // namespace

TEST_CASE("notes come in the order in which they were sent, however few may wait") {
  const platform::Platform platform = test_platform();
  for (const bool is_emulated : {false, true}) {
    std::unique_ptr<Clock> clock;
    if (is_emulated) {
      clock = std::make_unique<EmulatedClock>(posix_executor(), platform, 1);
    } else {
      clock = std::make_unique<RealClock>(posix_executor());
    }
    Runtime runtime(std::move(clock));
    for (const std::size_t capacity : {1U, 3U, 1000U}) {
      const auto inbox = inbox_of(runtime, capacity);
      std::thread sender([&] {
        for (int note = 0; note < 500; ++note) {
          if (!inbox->send(note)) std::abort();
        }
        inbox->close();
      });
      std::vector<int> taken;
      const Status status = runtime.run(take_all(*inbox, taken));
      sender.join();
      REQUIRE(status.ok());
      REQUIRE(taken.size() == 500);
      CHECK(std::ranges::is_sorted(taken));
    }
  }
}

TEST_CASE("nobody waits for room in an inbox that is closed, and the rest can be taken back") {
  Runtime runtime(std::make_unique<RealClock>(posix_executor()));
  const auto inbox = inbox_of(runtime, 2);
  REQUIRE(inbox->send(1));
  REQUIRE(inbox->send(2));
  std::atomic<int> sent{-1};
  std::thread sender([&] { sent = inbox->send(3) ? 1 : 0; });
  inbox->close();
  sender.join();
  CHECK(sent == 0);
  const std::deque<int> rest = inbox->take_rest();
  CHECK(std::vector(rest.begin(), rest.end()) == std::vector{1, 2});
}

TEST_CASE("a failure wakes who waits for a note") {
  Runtime runtime(std::make_unique<RealClock>(posix_executor()));
  const auto failing = inbox_of(runtime, 2);
  const auto silent = inbox_of(runtime, 2);
  std::vector<int> taken;
  Status waited;
  const auto both = [&]() -> Task<Status> {
    TaskGroup group(runtime);
    group.spawn(take_all(*silent, taken));
    group.spawn(fail_after(runtime, *failing, 7));
    waited = co_await group.join();
    co_return waited;
  };
  std::thread sender([&] { failing->send(7); });
  const Status status = runtime.run(both());
  sender.join();
  CHECK(status.error().message() == "the drive is gone");
  CHECK_FALSE(waited.ok());
}

TEST_CASE("nothing comes from outside in simulated time") {
  const platform::Platform platform = test_platform();
  Runtime runtime(std::make_unique<SimulatedClock>(platform, Disturbance{}));
  CHECK(Inbox<int>::make(runtime, 1).error().code() == ErrorCode::unsupported);
}
