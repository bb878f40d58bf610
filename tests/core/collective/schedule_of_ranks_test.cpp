// Calls as operations of a schedule: started by coroutines, their ends noted by the thread that
// makes progress.

#include <catch2/catch.hpp>

#include "checked_call.h"
#include "core/runtime/clocks.h"
#include "core/runtime/sync.h"
#include "tests/allocation_count.h"
#include "thread_world.h"

using namespace sluice;
using namespace sluice::collective;

namespace {

std::unique_ptr<runtime::Runtime> real_runtime() {
  auto engine = io::open_io_engine({.kind = io::IoEngineKind::posix});
  if (!engine.ok()) return nullptr;
  auto executor = runtime::WorkExecutor::make(std::move(*engine), {});
  if (!executor.ok()) return nullptr;
  return std::make_unique<runtime::Runtime>(
      std::make_unique<runtime::RealClock>(std::move(*executor)));
}

// An operation that is this call.
struct Started {
  Communicator* communicator;
  const Call* call;
};
runtime::Operation operation_of(runtime::Runtime& runtime, const Started& started) {
  runtime::Operation operation;
  operation.runtime = &runtime;
  operation.work.kind = runtime::WorkKind::external;
  operation.work.start = [started = &started](runtime::Completion completion) {
    return started->communicator->start(*started->call, std::move(completion));
  };
  return operation;
}

runtime::Task<Status> await_call(runtime::Runtime& runtime, Started started) {
  Status status = co_await operation_of(runtime, started);
  co_return status;
}

runtime::Task<Status> await_all(runtime::Runtime& runtime, Communicator& communicator,
                                const std::vector<CheckedCall>& calls) {
  runtime::TaskGroup group(runtime);
  for (const CheckedCall& call : calls) {
    group.spawn(await_call(runtime, {&communicator, &call.call()}));
  }
  Status status = co_await group.join();
  co_return status;
}

Problems run_schedule(Communicator& communicator, int round_count) {
  Problems problems;
  const auto runtime = real_runtime();
  if (runtime == nullptr) return {"no runtime"};
  for (int round = 0; round < round_count; ++round) {
    std::vector<CheckedCall> calls;
    for (const Kind kind :
         {Kind::all_gather, Kind::reduce_scatter, Kind::all_reduce, Kind::broadcast}) {
      CallPlan plan;
      plan.kind = kind;
      plan.count = 1000 + round;
      plan.salt = static_cast<std::uint64_t>(round);
      calls.emplace_back(plan, communicator.ranks_of(kWorld), communicator.rank());
    }
    const Status status = runtime->run(await_all(*runtime, communicator, calls));
    if (!status.ok()) return {status.error().message()};
    for (const CheckedCall& call : calls) {
      if (!call.problem().empty()) problems.push_back(call.problem());
    }
  }
  return problems;
}

}  // namespace

TEST_CASE("a schedule awaits calls as operations, several at once") {
  const Problems problems =
      on_ranks({.rank_count = 3, .delay_polls_max = 2}, {.message_bytes = 1000},
               [](Communicator& communicator) { return run_schedule(communicator, 20); });
  REQUIRE(problems == Problems{});
}

TEST_CASE("a call that is refused ends its operation with what is wrong") {
  const Problems problems = on_ranks({.rank_count = 1}, {}, [](Communicator& communicator) {
    const auto runtime = real_runtime();
    if (runtime == nullptr) return Problems{"no runtime"};
    Call call;
    call.group = GroupId{9};
    const Status status = runtime->run(await_call(*runtime, {&communicator, &call}));
    return Problems{status.ok() ? "not refused" : status.error().message()};
  });
  REQUIRE(problems == Problems{"barrier (no label): there is no group 9"});
}

TEST_CASE("once groups are made no call takes memory") {
  const Problems problems = on_ranks({.rank_count = 2}, {}, [](Communicator& communicator) {
    std::vector<float> numbers(5000, 1.0F);
    Call call;
    call.kind = Kind::all_reduce;
    call.type = ElementType::fp32;
    call.in = std::as_bytes(std::span(numbers));
    call.out = std::as_writable_bytes(std::span(numbers));
    std::int64_t before = 0;
    for (int round = 0; round < 100; ++round) {
      // The first calls of both ranks are behind both once the second one has ended.
      if (round == 2) before = allocation_count();
      if (!communicator.run(call).ok()) return Problems{"failed"};
    }
    const std::int64_t taken = allocation_count() - before;
    if (!communicator.barrier("counted").ok()) return Problems{"failed"};
    return taken == 0 ? Problems{} : Problems{std::to_string(taken) + " allocations"};
  });
  REQUIRE(problems == Problems{});
}
