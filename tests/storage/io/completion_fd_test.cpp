// The eventfd is readable when, and only when, reap() has something; nothing is slept for.

#include <atomic>
#include <catch2/catch.hpp>
#include <future>

#include "base/units.h"
#include "io_test_support.h"
#include "storage/io/detail/attempt_hook.h"
#include "storage/io/faulty_engine.h"

namespace sluice::io::testing {
namespace {

IoEngineKind each_kind() { return GENERATE(IoEngineKind::io_uring, IoEngineKind::posix); }

struct Case {
  TemporaryFolder folder;
  File file = make_file(folder.file("a"), 16 * kPageBytes, 1);
  PageAlignedBuffer memory = allocate(16 * kPageBytes);
  std::vector<IoCompletion> completions = std::vector<IoCompletion>(16);

  IoRequest read(std::size_t page) {
    return {.file = &file,
            .offset_bytes = static_cast<std::int64_t>(page) * kPageBytes,
            .data = memory.bytes().subspan(page * kPageBytes, kPageBytes),
            .user_data = page};
  }
};

// Polls and reaps as an event loop does, never waiting inside reap().
std::vector<std::uint64_t> poll_all(IoEngine& engine, std::span<IoCompletion> completions) {
  std::vector<std::uint64_t> users;
  while (engine.inflight_count() > 0) {
    REQUIRE(is_readable(engine.completion_fd(), kLongMs));
    const std::size_t count = engine.reap(completions, 0);
    for (const IoCompletion& completion : completions.first(count))
      users.push_back(completion.user_data);
  }
  return users;
}

}  // namespace

TEST_CASE("the eventfd is readable from a completion to its reaping") {
  Case data;
  const auto engine = open_engine(each_kind(), 4);
  CHECK_FALSE(is_readable(engine->completion_fd()));
  const IoRequest request = data.read(0);
  for (int round = 0; round < 3; ++round) {
    REQUIRE(engine->submit(std::span(&request, 1)) == 1);
    CHECK(poll_all(*engine, data.completions) == std::vector<std::uint64_t>{0});
    CHECK_FALSE(is_readable(engine->completion_fd()));
  }
}

TEST_CASE("the eventfd is readable at once for a request that the engine itself refuses") {
  Case data;
  const auto engine = open_engine(each_kind(), 4);
  IoRequest request = data.read(0);
  request.data = {};
  REQUIRE(engine->submit(std::span(&request, 1)) == 1);
  CHECK(is_readable(engine->completion_fd()));
  CHECK(engine->reap(data.completions, 0) == 1);
  CHECK_FALSE(is_readable(engine->completion_fd()));
}

TEST_CASE("the eventfd stays readable while reaping leaves something") {
  Case data;
  const auto engine = open_engine(each_kind(), 8);
  std::vector<IoRequest> requests;
  for (std::size_t page = 0; page < 8; ++page) {
    requests.push_back(data.read(page));
    if (page % 3 == 0) requests.back().data = {};
  }
  REQUIRE(engine->submit(requests) == 8);
  CHECK(poll_all(*engine, std::span(data.completions).first(1)).size() == 8);
  CHECK_FALSE(is_readable(engine->completion_fd()));
}

TEST_CASE("whoever polls may read the eventfd and misses nothing") {
  Case data;
  const auto engine = open_engine(each_kind(), 8);
  std::vector<IoRequest> requests;
  for (std::size_t page = 0; page < 8; ++page) requests.push_back(data.read(page));
  REQUIRE(engine->submit(requests) == 8);
  std::size_t count = 0;
  while (count < 8) {
    REQUIRE(is_readable(engine->completion_fd(), kLongMs));
    std::uint64_t raised = 0;
    REQUIRE(::read(engine->completion_fd(), &raised, sizeof raised) == sizeof raised);
    count += engine->reap(std::span(data.completions).first(2), 0);
  }
}

TEST_CASE("a transfer that is continued wakes the poller again") {
  Case data;
  FaultPlan plan;
  using Fault = FaultPlan::Fault;
  plan.planned = {{0, Fault::again}, {0, Fault::short_transfer}, {0, Fault::interrupted}};
  plan.shuffle_completions = GENERATE(false, true);
  const auto engine = make_faulty_engine(open_engine(each_kind(), 4), plan);
  const std::vector<IoRequest> requests = {data.read(0), data.read(1), data.read(2)};
  REQUIRE(engine->submit(requests) == 3);
  // One at a time, so that the wrapper too has something left.
  CHECK(poll_all(*engine, std::span(data.completions).first(1)).size() == 3);
  CHECK_FALSE(is_readable(engine->completion_fd()));
}

namespace {

// Lets request 0 wait until request 1 is through.
class HoldFirst final : public detail::AttemptHook {
 public:
  explicit HoldFirst(IoEngineKind kind) : kind_(kind) {}
  void release() { released_.set_value(); }
  std::optional<std::int32_t> before_attempt(std::uint64_t user_data, detail::Attempt&) override {
    if (user_data != 0) return std::nullopt;
    if (kind_ == IoEngineKind::posix) {
      future_.wait();  // holds one worker
      return std::nullopt;
    }
    return again_count_-- > 0 ? std::optional(-EAGAIN) : std::nullopt;
  }

 private:
  const IoEngineKind kind_;
  std::promise<void> released_;
  std::future<void> future_ = released_.get_future();
  int again_count_ = 1;
};

}  // namespace

TEST_CASE("a request may finish before one that was submitted earlier") {
  Case data;
  const IoEngineKind kind = each_kind();
  HoldFirst hook(kind);
  auto engine = open_engine(kind, 4, 2);
  dynamic_cast<detail::KernelEngine&>(*engine).set_attempt_hook(&hook);
  std::vector<IoRequest> requests = {data.read(0), data.read(1)};
  if (kind == IoEngineKind::io_uring) requests[1].data = {};  // refused: finished at submit
  REQUIRE(engine->submit(requests) == 2);
  REQUIRE(engine->reap(std::span(data.completions).first(1), 1) == 1);
  CHECK(data.completions[0].user_data == 1);
  hook.release();
  REQUIRE(engine->reap(data.completions, 1) == 1);
  CHECK(data.completions[0].user_data == 0);
  CHECK(data.completions[0].status.ok());
}

}  // namespace sluice::io::testing
