// Operations that complete elsewhere, with a thread that answers in any order, late, twice, never,
// and after the run has failed or ended.

#include "core/runtime/external_work.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <latch>
#include <random>

#include "answering_thread.h"
#include "base/clock.h"
#include "core/runtime/clocks.h"
#include "core/runtime/kernel_cost.h"
#include "core/runtime/sync.h"
#include "test_platform.h"

using namespace sluice;
using namespace sluice::runtime;
using namespace sluice::stages;
using Catch::Matchers::Contains;

namespace {

struct RealRun {
  RealRun() {
    auto engine = io::open_io_engine({.kind = io::IoEngineKind::posix});
    REQUIRE(engine.ok());
    auto made = WorkExecutor::make(std::move(*engine), {.lanes = {}, .host_worker_count = 1});
    REQUIRE(made.ok());
    executor = made->get();
    runtime = std::make_unique<Runtime>(std::make_unique<RealClock>(std::move(*made)));
  }
  WorkExecutor* executor = nullptr;
  std::unique_ptr<Runtime> runtime;
};

Operation external(Runtime& runtime, AnsweringThread& thread, int subgroup = 0,
                   TimeNs patience_ns = 0) {
  Operation operation;
  operation.runtime = &runtime;
  operation.label.stage = Stage::update;
  operation.label.device = DeviceId{1};
  operation.label.subgroup = SubgroupId{subgroup};
  operation.work.kind = WorkKind::external;
  operation.work.start = [to = &thread](Completion completion) {
    return to->hand(std::move(completion));
  };
  operation.work.patience_ns = patience_ns;
  return operation;
}

Task<Status> await_one(Operation operation, int* ended_count = nullptr) {
  Status status = co_await operation;
  if (ended_count != nullptr) *ended_count += 1;
  co_return status;
}

// Side by side; each ends once, or the group fails.
Task<Status> await_all(Runtime& runtime, std::vector<Operation> operations, int* ended_count) {
  TaskGroup group(runtime);
  for (const Operation& operation : operations) group.spawn(await_one(operation, ended_count));
  Status status = co_await group.join();
  co_return status;
}

std::vector<Operation> many(Runtime& runtime, AnsweringThread& thread, int count) {
  std::vector<Operation> operations;
  for (int s = 0; s < count; ++s) operations.push_back(external(runtime, thread, s));
  return operations;
}

}  // namespace

TEST_CASE("work that ends elsewhere ends its operation, with the times that it reports") {
  RealRun run;
  AnsweringThread thread(
      1, [](auto& handed) { handed[0].note(ok_status(), {.start_ns = 1'000, .end_ns = 3'000}); });
  struct Times : OperationSink {
    void on_submit(const OperationState&) override {}
    void on_finish(const OperationState& state) override { ended = {state.start_ns, state.end_ns}; }
    std::pair<TimeNs, TimeNs> ended;
  } times;
  run.runtime->add_sink(&times);
  REQUIRE(run.runtime->run(await_one(external(*run.runtime, thread))).ok());
  REQUIRE(times.ended == std::pair<TimeNs, TimeNs>{1'000, 3'000});
}

TEST_CASE("what a note cannot carry is looked at on the owner thread, and decides the outcome") {
  const auto [noted, found] =
      GENERATE(std::pair(true, true), std::pair(true, false), std::pair(false, true));
  RealRun run;
  AnsweringThread thread(1, [noted = noted](auto& handed) {
    handed[0].note(noted ? ok_status() : Status(make_error(ErrorCode::io, "as noted")));
  });
  struct Seen {
    std::thread::id owner;
    bool is_good;
    int count = 0;
  } seen{std::this_thread::get_id(), found};
  Operation operation = external(*run.runtime, thread);
  operation.work.finish = [seen = &seen](Status outcome) -> Status {
    seen->count += std::this_thread::get_id() == seen->owner ? 1 : 100;
    RETURN_IF_ERROR(outcome);
    return seen->is_good ? ok_status() : Status(make_error(ErrorCode::corrupt, "as found"));
  };
  const Status status = run.runtime->run(await_one(operation));
  CHECK(seen.count == 1);
  REQUIRE(status.ok() == (noted && found));
  if (!status.ok()) CHECK(status.error().message() == (noted ? "as found" : "as noted"));
}

TEST_CASE("work that was given up is not looked at") {
  RealRun run;
  AnsweringThread thread(1, [](auto&) {});
  int count = 0;
  Operation operation = external(*run.runtime, thread, 0, 5'000'000);
  operation.work.finish = [count = &count](Status outcome) {
    *count += 1;
    return outcome;
  };
  REQUIRE_FALSE(run.runtime->run(await_one(operation)).ok());
  REQUIRE(count == 0);
}

TEST_CASE("a note that comes while the work is started counts") {
  RealRun run;
  Operation operation;
  operation.runtime = run.runtime.get();
  operation.work.kind = WorkKind::external;
  operation.work.start = [](Completion completion) {
    return completion.note(ok_status()) ? ok_status()
                                        : Status(make_error(ErrorCode::internal, "not noted"));
  };
  REQUIRE(run.runtime->run(await_one(operation)).ok());
}

TEST_CASE("notes in any order end every operation once") {
  for (std::uint32_t seed = 0; seed < 50; ++seed) {
    RealRun run;
    AnsweringThread thread(40, [seed](auto& handed) {
      std::shuffle(handed.begin(), handed.end(), std::mt19937(seed));
      for (Completion& completion : handed) completion.note(ok_status());
    });
    int ended_count = 0;
    REQUIRE(run.runtime->run(await_all(*run.runtime, many(*run.runtime, thread, 40), &ended_count))
                .ok());
    REQUIRE(ended_count == 40);
    REQUIRE(run.executor->ignored_note_count() == 0);
  }
}

TEST_CASE("more operations than places: the others wait their turn") {
  RealRun run;
  constexpr int kCount = 1000;
  int ended_count = 0;
  // Answers what it gets at once, so that places come free one after the other.
  struct Echo {
    Status hand(Completion completion) {
      std::thread([completion = std::move(completion)] { completion.note(ok_status()); }).detach();
      return ok_status();
    }
  } echo;
  std::vector<Operation> operations;
  for (int s = 0; s < kCount; ++s) {
    Operation operation;
    operation.runtime = run.runtime.get();
    operation.work.kind = WorkKind::external;
    operation.work.start = [to = &echo](Completion completion) {
      return to->hand(std::move(completion));
    };
    operations.push_back(operation);
  }
  REQUIRE(run.runtime->run(await_all(*run.runtime, operations, &ended_count)).ok());
  REQUIRE(ended_count == kCount);
}

TEST_CASE("a second note is ignored and counted, also when its place has another operation") {
  RealRun run;
  AnsweringThread first(1, [](auto& handed) { handed[0].note(ok_status()); });
  REQUIRE(run.runtime->run(await_one(external(*run.runtime, first))).ok());
  // The second operation gets the place of the first, whose note must not end it.
  bool is_second_ended = false;
  AnsweringThread second(1, [&](auto& handed) {
    is_second_ended = first.handed()[0].note(make_error(ErrorCode::io, "a stale failure"));
    handed[0].note(ok_status());
    is_second_ended |= handed[0].note(make_error(ErrorCode::io, "a second answer"));
  });
  REQUIRE(run.runtime->run(await_one(external(*run.runtime, second))).ok());
  second.join();
  REQUIRE_FALSE(is_second_ended);
  REQUIRE(run.executor->ignored_note_count() == 2);
}

TEST_CASE("two threads that answer at once: one note counts") {
  for (int round = 0; round < 200; ++round) {
    RealRun run;
    std::atomic<int> counted = 0;
    AnsweringThread thread(1, [&](auto& handed) {
      std::latch both(2);
      auto answer = [&] {
        both.arrive_and_wait();
        counted += handed[0].note(ok_status()) ? 1 : 0;
      };
      std::thread other(answer);
      answer();
      other.join();
    });
    REQUIRE(run.runtime->run(await_one(external(*run.runtime, thread))).ok());
    thread.join();
    REQUIRE(counted == 1);
    REQUIRE(run.executor->ignored_note_count() == 1);
  }
}

TEST_CASE("an end that never comes is given up by name, and a note after the run touches nothing") {
  AnsweringThread never(2, [](auto&) {});
  std::vector<Completion> late;
  {
    RealRun run;
    const Status status = run.runtime->run(await_one(external(*run.runtime, never, 7, 20'000'000)));
    REQUIRE_FALSE(status.ok());
    CHECK(status.error().code() == ErrorCode::io);
    CHECK_THAT(status.error().message(),
               Contains("update of subgroup 7 on device 1 was started and has not ended for 20"));
    late = std::move(never.handed());
    REQUIRE(late.size() == 1);
    REQUIRE_FALSE(late[0].note(ok_status()));
    REQUIRE(run.executor->ignored_note_count() == 1);
  }
  REQUIRE_FALSE(late[0].note(make_error(ErrorCode::io, "after the run")));
}

TEST_CASE("after a failure the run waits for what is under way elsewhere") {
  RealRun run;
  std::atomic<bool> is_noted = false;
  AnsweringThread slow(2, [&](auto& handed) {
    handed[1].note(make_error(ErrorCode::io, "the kernel of subgroup 1 failed"));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // only so that a fault would show
    is_noted = true;
    handed[0].note(ok_status());
  });
  int ended_count = 0;
  const Status status =
      run.runtime->run(await_all(*run.runtime, many(*run.runtime, slow, 2), &ended_count));
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().message() == "the kernel of subgroup 1 failed");
  CHECK(is_noted);
  CHECK(ended_count == 2);
  CHECK(run.runtime->inflight_count() == 0);
}

TEST_CASE("work that cannot be started fails its operation and frees its place") {
  RealRun run;
  AnsweringThread thread(1, [](auto& handed) { handed[0].note(ok_status()); });
  Operation refused;
  refused.runtime = run.runtime.get();
  refused.work.kind = WorkKind::external;
  refused.work.start = [](const Completion&) {
    return Status(make_error(ErrorCode::unsupported, "no compute unit named update"));
  };
  const Status status = run.runtime->run(await_one(refused));
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().message() == "no compute unit named update");
  CHECK(run.runtime->inflight_count() == 0);
}

TEST_CASE("work elsewhere occupies no worker") {
  RealRun run;  // with one worker
  bool has_worked = false;
  AnsweringThread thread(30, [&](auto&) {});
  Operation work;
  work.runtime = run.runtime.get();
  work.work.kind = WorkKind::function;
  // Ends what is under way elsewhere: were a worker waiting for that, nothing would go on.
  work.work.function = [&thread, &has_worked] {
    has_worked = true;
    for (Completion& completion : thread.handed()) completion.note(ok_status());
    return ok_status();
  };
  std::vector<Operation> operations = many(*run.runtime, thread, 30);
  operations.push_back(work);
  int ended_count = 0;
  REQUIRE(run.runtime->run(await_all(*run.runtime, operations, &ended_count)).ok());
  CHECK(has_worked);
  CHECK(ended_count == 31);
}

TEST_CASE("the emulated clock ends external work at the later of note and model") {
  const platform::Platform platform = test_platform();
  auto engine = io::open_io_engine({.kind = io::IoEngineKind::posix});
  REQUIRE(engine.ok());
  auto executor = WorkExecutor::make(std::move(*engine), {});
  REQUIRE(executor.ok());
  Runtime runtime(std::make_unique<EmulatedClock>(std::move(*executor), platform, 1.0));
  AnsweringThread thread(1, [](auto& handed) { handed[0].note(ok_status()); });
  Operation operation = external(runtime, thread);
  const platform::EngineId id = platform.devices[0].engine;
  operation.cost = kernel_cost(id, platform.engines[static_cast<std::size_t>(index_of(id))],
                               "adamw", 200'000);  // 1 ms + 5 us
  const TimeNs start_ns = runtime.now_ns();
  REQUIRE(runtime.run(await_one(operation)).ok());
  CHECK(runtime.now_ns() - start_ns >= 1'005'000);
}

TEST_CASE("the simulated clock does not start external work") {
  const platform::Platform platform = test_platform();
  Runtime runtime(std::make_unique<SimulatedClock>(platform, Disturbance{}));
  AnsweringThread never(1, [](auto&) {});
  REQUIRE(runtime.run(await_one(external(runtime, never))).ok());
  CHECK(never.handed().empty());
}
