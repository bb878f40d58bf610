// Who is asked, who answers and who is named, with ranks stepped by hand in made-up time.

#include <catch2/catch.hpp>

#include "checked_call.h"
#include "core/collective/detail/progress_engine.h"
#include "core/collective/thread_ranks.h"

using namespace sluice;
using namespace sluice::collective;
using Catch::Matchers::Contains;

namespace {

constexpr TimeNs kPatienceNs = 1000;

struct Hand {
  Hand(ThreadWorld& world, int rank)
      : transport(world.transport(rank)), engine(*transport, slots, {.patience_ns = kPatienceNs}) {
    REQUIRE(engine.add_group(kWorld, std::array{0, 1, 2}).ok());
  }
  // A barrier of all.
  void join(TimeNs now_ns) {
    detail::CallState* state = slots.try_acquire();
    state->call = {};
    state->notice = &pending;
    engine.accept(state, now_ns);
  }
  std::unique_ptr<Transport> transport;
  detail::CallSlots slots;
  detail::ProgressEngine engine;
  Pending pending;
};

}  // namespace

TEST_CASE("a rank that joins late answers then, and only the one that does not come is named") {
  const auto world = ThreadWorld::make({.rank_count = 3});
  Hand early(*world, 0);
  Hand late(*world, 1);
  const Hand absent(*world, 2);
  early.join(0);
  early.engine.step(kPatienceNs / 2);  // asks
  late.engine.step(kPatienceNs / 2);   // is asked, and has not joined
  late.join(kPatienceNs - 10);
  early.engine.step(kPatienceNs - 1);
  REQUIRE_FALSE(early.pending.is_ended());
  early.engine.step(kPatienceNs);
  REQUIRE(early.pending.is_ended());
  const Status status = early.pending.wait();
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().code() == ErrorCode::io);
  CHECK_THAT(status.error().message(),
             Contains("rank 0 of 3, barrier (no label) in group 0 (ranks 0, 1, 2): it has not "
                      "ended for 1 us; no word of having joined it from rank 2: stopped"));
}

TEST_CASE("a rank that was itself stopped asks before it blames") {
  const auto world = ThreadWorld::make({.rank_count = 3});
  Hand stopped(*world, 0);
  Hand second(*world, 1);
  Hand third(*world, 2);
  stopped.join(0);
  second.join(0);
  // Long after: the others have joined, and would have said so.
  stopped.engine.step(100 * kPatienceNs);
  REQUIRE_FALSE(stopped.pending.is_ended());
  third.join(100 * kPatienceNs);
  for (int round = 0; round < 4; ++round) {
    for (Hand* hand : {&second, &third, &stopped}) hand->engine.step(100 * kPatienceNs);
  }
  for (Hand* hand : {&stopped, &second, &third}) {
    REQUIRE(hand->pending.is_ended());
    REQUIRE(hand->pending.wait().ok());
  }
}

TEST_CASE("while calls end in time no note is sent") {
  const auto world = ThreadWorld::make({.rank_count = 3});
  Hand first(*world, 0);
  Hand second(*world, 1);
  Hand third(*world, 2);
  first.join(0);
  for (TimeNs now_ns = 0; now_ns < kPatienceNs / 2; now_ns += 10) first.engine.step(now_ns);
  second.join(kPatienceNs / 2);
  third.join(kPatienceNs / 2);
  CHECK_FALSE(second.transport->take_note().has_value());
  CHECK_FALSE(third.transport->take_note().has_value());
  first.engine.step(kPatienceNs / 2 - 1);
  REQUIRE_FALSE(second.transport->take_note().has_value());
}
