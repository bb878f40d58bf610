// The eventfd where transfers are continued or overtake each other; what every engine promises of
// it stands in io_engine_conformance.h. Nothing is slept for.

#include <atomic>
#include <catch2/catch.hpp>
#include <future>

#include "base/units.h"
#include "storage/io/detail/attempt_hook.h"
#include "tests/storage/io/faulty_engine.h"
#include "tests/storage/io/io_engine_conformance.h"

namespace sluice::io::testing {
namespace {

IoEngineKind each_kind() { return GENERATE(IoEngineKind::io_uring, IoEngineKind::posix); }

}  // namespace

TEST_CASE("a transfer that is continued wakes the poller again") {
  PagesOfFile data;
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
  PagesOfFile data;
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
