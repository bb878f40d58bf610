// Tasks, waiting, failure and the three clocks.

#include <catch2/catch.hpp>
#include <vector>

#include "base/clock.h"
#include "core/runtime/clocks.h"
#include "core/runtime/kernel_cost.h"
#include "core/runtime/sync.h"
#include "test_platform.h"

using namespace sluice;
using namespace sluice::runtime;
using namespace sluice::stages;

namespace {

std::unique_ptr<Runtime> simulated(const platform::Platform& platform,
                                   Disturbance disturbance = {}) {
  return std::make_unique<Runtime>(std::make_unique<SimulatedClock>(platform, disturbance));
}

std::unique_ptr<WorkExecutor> executor() {
  io::IoEngineOptions options;
  options.kind = io::IoEngineKind::posix;
  auto engine = io::open_io_engine(options);
  REQUIRE(engine.ok());
  auto made = WorkExecutor::make(std::move(*engine), {});
  REQUIRE(made.ok());
  return std::move(*made);
}

Operation transfer(Runtime& runtime, const platform::Platform& platform, int device,
                   std::int64_t size_bytes) {
  Operation operation;
  operation.runtime = &runtime;
  operation.label.stage = Stage::state_read;
  operation.label.device = DeviceId{device};
  operation.label.size_bytes = size_bytes;
  operation.cost.route = platform.devices[static_cast<std::size_t>(device)].host_route;
  return operation;
}

Operation function(Runtime& runtime, InlineFunction work) {
  Operation operation;
  operation.runtime = &runtime;
  operation.work.kind = WorkKind::function;
  operation.work.function = work;
  return operation;
}

Waiting waiting(const char* what, int subgroup = -1) {
  Waiting who;
  who.what = what;
  who.subgroup = SubgroupId{subgroup};
  return who;
}

}  // namespace

TEST_CASE("simulated transfers take what their links say, and share a link fairly") {
  const platform::Platform platform = test_platform();
  auto runtime = simulated(platform);
  // 4 MB from each of two drives of 400 MB/s over a host link of 1 GB/s: the drives set the pace.
  auto both = [&]() -> Task<Status> {
    const Operation reads[] = {transfer(*runtime, platform, 0, 4'000'000),
                               transfer(*runtime, platform, 1, 4'000'000)};
    Status status = co_await together<2>(reads);
    co_return status;
  };
  REQUIRE(runtime->run(both()).ok());
  CHECK(runtime->now_ns() == 10'000'000 + 11'000);  // latencies: 1 us host, 10 us drive
}

TEST_CASE("an engine runs one kernel at a time in the order asked") {
  const platform::Platform platform = test_platform();
  auto runtime = simulated(platform);
  const platform::EngineId id = platform.devices[0].engine;
  const auto& engine = platform.engine(id);
  std::vector<int> order;
  auto one = [&](int number, double elements) -> Task<Status> {
    Operation kernel;
    kernel.runtime = runtime.get();
    kernel.cost = kernel_cost(id, engine, "adamw", elements);
    Status status = co_await kernel;
    order.push_back(number);
    co_return status;
  };
  auto all = [&]() -> Task<Status> {
    TaskGroup group(*runtime);
    group.spawn(one(1, 200'000));  // 1 ms + 5 us
    group.spawn(one(2, 2'000));    // 10 us + 5 us, but behind the first
    Status status = co_await group.join();
    co_return status;
  };
  REQUIRE(runtime->run(all()).ok());
  CHECK(order == std::vector<int>{1, 2});
  CHECK(runtime->now_ns() == 1'005'000 + 15'000);
}

TEST_CASE("a pool serves in the order asked and never the same number twice") {
  const platform::Platform platform = test_platform();
  auto runtime = simulated(platform);
  Pool pool(*runtime, 2);
  std::vector<int> started;
  std::array<bool, 2> in_use{};
  auto user = [&](int number) -> Task<Status> {
    Result<Pool::Lease> lease = co_await pool.acquire(waiting("a buffer"));
    CO_RETURN_IF_ERROR(lease);
    bool& used = in_use[static_cast<std::size_t>(lease->index())];
    CHECK_FALSE(used);
    used = true;
    started.push_back(number);
    Status status = co_await transfer(*runtime, platform, number % 2, 1000 * (7 - number));
    used = false;
    co_return status;
  };
  auto all = [&]() -> Task<Status> {
    TaskGroup group(*runtime);
    for (int number = 0; number < 6; ++number) group.spawn(user(number));
    Status status = co_await group.join();
    co_return status;
  };
  REQUIRE(runtime->run(all()).ok());
  CHECK(started == std::vector<int>{0, 1, 2, 3, 4, 5});
}

TEST_CASE("the first failure stops the schedule: waiters are woken, what is in flight ends") {
  const platform::Platform platform = test_platform();
  auto runtime = simulated(platform, {.failing_operation = 1});
  Event never(*runtime);
  int cancelled = 0;
  int ended = 0;
  auto waiter = [&]() -> Task<Status> {
    Status status = co_await never.wait(waiting("what never comes"));
    if (!status.ok()) cancelled += status.error().code() == ErrorCode::cancelled ? 1 : 0;
    co_return status;
  };
  auto mover = [&](int device, std::int64_t size_bytes) -> Task<Status> {
    Status status = co_await transfer(*runtime, platform, device, size_bytes);
    ended += 1;
    co_return status;
  };
  auto all = [&]() -> Task<Status> {
    TaskGroup group(*runtime);
    group.spawn(waiter());
    group.spawn(waiter());
    group.spawn(mover(0, 1'000'000));
    group.spawn(mover(1, 1000));  // the second operation: it fails first
    Status status = co_await group.join();
    co_return status;
  };
  const Status status = runtime->run(all());
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().code() == ErrorCode::io);
  CHECK(cancelled == 2);
  CHECK(ended == 2);
  CHECK(runtime->inflight_count() == 0);
}

TEST_CASE("what is set right after a failure wakes nobody a second time") {
  const platform::Platform platform = test_platform();
  auto runtime = simulated(platform);
  Event event(*runtime);
  int woken = 0;
  auto waiter = [&]() -> Task<Status> {
    Status status = co_await event.wait(waiting("what comes too late"));
    woken += 1;
    co_return status;
  };
  auto all = [&]() -> Task<Status> {
    TaskGroup group(*runtime);
    group.spawn(waiter());
    group.spawn(waiter());
    runtime->fail(make_error(ErrorCode::io, "a drive is gone"));  // they are made ready
    event.set();
    Status status = co_await group.join();
    co_return status;
  };
  CHECK(runtime->run(all()).error().code() == ErrorCode::io);
  CHECK(woken == 2);
}

TEST_CASE("after a failure nothing new is started") {
  const platform::Platform platform = test_platform();
  auto runtime = simulated(platform, {.failing_operation = 0});
  auto two = [&]() -> Task<Status> {
    Status first = co_await transfer(*runtime, platform, 0, 1000);
    CHECK_FALSE(first.ok());
    Status second = co_await transfer(*runtime, platform, 0, 1000);
    CHECK(second.error().code() == ErrorCode::cancelled);
    co_return first;
  };
  CHECK_FALSE(runtime->run(two()).ok());
}

TEST_CASE("a stuck schedule ends with who waits for what") {
  const platform::Platform platform = test_platform();
  auto runtime = simulated(platform);
  Pool pool(*runtime, 1);
  auto greedy = [&]() -> Task<Status> {
    Result<Pool::Lease> first = co_await pool.acquire(waiting("a buffer", 7));
    Result<Pool::Lease> second = co_await pool.acquire(waiting("a second buffer", 7));
    co_return second.ok() ? ok_status() : Status(second.error());
  };
  const Status status = runtime->run(greedy());
  REQUIRE_FALSE(status.ok());
  CHECK_THAT(status.error().message(), Catch::Contains("stuck"));
  CHECK_THAT(status.error().message(), Catch::Contains("of subgroup 7 waits for a second buffer"));
}

TEST_CASE("the same seed gives the same simulated times, another seed others") {
  const platform::Platform platform = test_platform();
  const auto end_of = [&](std::uint64_t seed) {
    auto runtime = simulated(platform, {.seed = seed, .delay_max_ns = 100'000});
    auto all = [&]() -> Task<Status> {
      TaskGroup group(*runtime);
      auto one = [&](int i) -> Task<Status> {
        Status status = co_await transfer(*runtime, platform, i % 2, 5000 + 100 * i);
        co_return status;
      };
      for (int i = 0; i < 20; ++i) group.spawn(one(i));
      Status status = co_await group.join();
      co_return status;
    };
    REQUIRE(runtime->run(all()).ok());
    return runtime->now_ns();
  };
  CHECK(end_of(1) == end_of(1));
  CHECK(end_of(1) != end_of(2));
}

TEST_CASE("the real clock runs functions on workers and hands their failure over") {
  Runtime runtime(std::make_unique<RealClock>(executor()));
  int value = 0;
  auto work = [&]() -> Task<Status> {
    Status good = co_await function(runtime, [&value] {
      value = 42;
      return ok_status();
    });
    CHECK(good.ok());
    Status bad = co_await function(
        runtime, [] { return Status(make_error(ErrorCode::corrupt, "the tile is torn")); });
    co_return bad;
  };
  const Status status = runtime.run(work());
  CHECK(value == 42);
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().message() == "the tile is torn");
}

namespace {

// Remembers what finished, with its times.
struct Witness final : OperationSink {
  void on_submit(const OperationState& /*state*/) override {}
  void on_finish(const OperationState& state) override {
    late_ns.push_back(state.end_ns - state.modelled_end_ns);
    dur_ns.push_back(state.end_ns - state.submit_ns);
    submit_ns.push_back(state.submit_ns);
    end_ns.push_back(state.end_ns);
  }
  std::vector<TimeNs> submit_ns;
  std::vector<TimeNs> end_ns;
  std::vector<TimeNs> late_ns;
  std::vector<TimeNs> dur_ns;
};

}  // namespace

TEST_CASE("an emulated operation never ends before its modelled time, nor before its work") {
  const platform::Platform platform = test_platform();
  Runtime runtime(std::make_unique<EmulatedClock>(executor(), platform, 2.0));
  Witness witness;
  runtime.add_sink(&witness);
  bool worked = false;
  auto all = [&]() -> Task<Status> {
    Operation quick = transfer(runtime, platform, 0, 400'000);  // 1 ms of model, 2 ms of wall
    quick.work.kind = WorkKind::function;
    quick.work.function = [] { return ok_status(); };
    Status first = co_await quick;
    CO_RETURN_IF_ERROR(first);
    Operation slow = transfer(runtime, platform, 0, 400);  // modelled in microseconds
    slow.work.kind = WorkKind::function;
    slow.work.function = [&worked] {
      const timespec pause = {0, 5'000'000};
      nanosleep(&pause, nullptr);
      worked = true;
      return ok_status();
    };
    Status second = co_await slow;
    CHECK(worked);
    co_return second;
  };
  REQUIRE(runtime.run(all()).ok());
  REQUIRE(witness.dur_ns.size() == 2);
  CHECK(witness.late_ns[0] >= 0);
  CHECK(witness.dur_ns[0] >= 2'000'000);
  CHECK(witness.dur_ns[1] >= 5'000'000);
}

TEST_CASE("the emulated clock charges nothing for the time that the schedule itself takes") {
  const platform::Platform platform = test_platform();
  Runtime runtime(std::make_unique<EmulatedClock>(executor(), platform, 1.0));
  Witness witness;
  runtime.add_sink(&witness);
  auto chain = [&]() -> Task<Status> {
    for (int i = 0; i < 3; ++i) {
      Status status = co_await transfer(runtime, platform, 0, 4'000'000);  // 10 ms
      CO_RETURN_IF_ERROR(status);
      const timespec dawdle = {0, 2'000'000};
      nanosleep(&dawdle, nullptr);
    }
    co_return ok_status();
  };
  REQUIRE(runtime.run(chain()).ok());
  REQUIRE(witness.end_ns.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(witness.late_ns[i] == 0);
    CHECK(witness.dur_ns[i] == witness.dur_ns[0]);
    if (i > 0) CHECK(witness.submit_ns[i] == witness.end_ns[i - 1]);
  }
}

TEST_CASE("after work that was late the emulated clock goes on from its end, and counts it") {
  const platform::Platform platform = test_platform();
  auto clock = std::make_unique<EmulatedClock>(executor(), platform, 12.0);
  const EmulatedClock& emulated = *clock;
  Runtime runtime(std::move(clock));
  Witness witness;
  runtime.add_sink(&witness);
  auto chain = [&]() -> Task<Status> {
    Operation slow = transfer(runtime, platform, 0, 400);  // modelled in microseconds
    slow.work.kind = WorkKind::function;
    slow.work.function = [] {
      const timespec pause = {0, 5'000'000};
      nanosleep(&pause, nullptr);
      return ok_status();
    };
    Status late = co_await slow;
    CO_RETURN_IF_ERROR(late);
    Status quick = co_await transfer(runtime, platform, 0, 400'000);
    co_return quick;
  };
  REQUIRE(runtime.run(chain()).ok());
  CHECK(witness.late_ns[0] > 1'000'000);
  CHECK(witness.late_ns[1] == 0);
  // Not a nanosecond before, which analysis would take for something that did not wait.
  CHECK(witness.submit_ns[1] == witness.end_ns[0]);
  const EmulationReport report = emulated.report();
  CHECK(report.operation_count == 2);
  CHECK(report.late_count == 1);
  CHECK(report.worst_late_ns == witness.late_ns[0]);
  CHECK(report.late_ns == witness.late_ns[0]);
  CHECK(report.modelled_ns > 0);
}
