#include "profiler/record/ring.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <iostream>
#include <thread>

#include "tests/allocation_count.h"

namespace sluice::record {
namespace {

Record numbered(std::int64_t number) { return SpanRecord{.ts = number, .bytes = number * 3}; }

TEST_CASE("a ring gives back what was pushed, in order, through many wraparounds") {
  Ring ring(8);
  std::vector<Record> drained;
  std::int64_t pushed = 0;
  // 3 in, at most 2 out, then 5 in, all out: every alignment of head and tail against the end.
  for (int round = 0; round < 100; ++round) {
    for (int i = 0; i < 3; ++i) REQUIRE(ring.try_push(numbered(pushed++)));
    REQUIRE(ring.drain(drained, 2) == 2);
    for (int i = 0; i < 5; ++i) REQUIRE(ring.try_push(numbered(pushed++)));
    REQUIRE(ring.drain(drained, 100) == 6);
  }
  REQUIRE(ring.drain(drained, 100) == 0);
  REQUIRE(drained.size() == static_cast<std::size_t>(pushed));
  for (std::int64_t i = 0; i < pushed; ++i) {
    REQUIRE(drained[i].span.ts == i);
    REQUIRE(drained[i].span.bytes == i * 3);
  }
  REQUIRE(ring.dropped_count() == 0);
}

TEST_CASE("a full ring drops the newest record and counts it") {
  Ring ring(5);
  REQUIRE(ring.capacity() == 8);
  for (int i = 0; i < 8; ++i) REQUIRE(ring.try_push(numbered(i)));
  for (int i = 8; i < 11; ++i) REQUIRE_FALSE(ring.try_push(numbered(i)));
  REQUIRE(ring.dropped_count() == 3);

  std::vector<Record> drained;
  REQUIRE(ring.drain(drained, 100) == 8);
  REQUIRE(drained.front().span.ts == 0);
  REQUIRE(drained.back().span.ts == 7);
  REQUIRE(ring.try_push(numbered(11)));
  REQUIRE(ring.dropped_count() == 3);
}

TEST_CASE("each kind of record comes back as itself") {
  Ring ring(4);
  REQUIRE(ring.try_push(StepRecord{.skipped = true, .step = 7, .loss = 2.5}));
  REQUIRE(ring.try_push(CounterRecord{.track = TrackId{3}, .value = 0.5}));
  std::vector<Record> drained;
  REQUIRE(ring.drain(drained, 4) == 2);
  REQUIRE(drained[0].kind() == RecordKind::step);
  REQUIRE(drained[0].step.skipped);
  REQUIRE(drained[0].step.loss == 2.5);
  REQUIRE(drained[1].kind() == RecordKind::counter);
  REQUIRE(drained[1].counter.track == TrackId{3});
}

TEST_CASE("two threads: every record arrives once and whole, or is counted as dropped") {
  Ring ring(64);  // small, so that it is full again and again
  constexpr std::int64_t kPushes = 200'000;
  std::atomic<bool> done{false};
  std::thread producer([&] {
    for (std::int64_t i = 0; i < kPushes; ++i) ring.try_push(numbered(i));
    done.store(true, std::memory_order_release);
  });

  std::vector<Record> drained;
  std::int64_t received = 0;
  std::int64_t last = -1;
  bool in_order_and_whole = true;
  for (bool last_round = false; !last_round;) {
    last_round = done.load(std::memory_order_acquire);
    drained.clear();
    received += static_cast<std::int64_t>(ring.drain(drained, 50));
    if (!drained.empty()) last_round = false;
    for (const Record& record : drained) {
      in_order_and_whole &= record.span.ts > last && record.span.bytes == record.span.ts * 3;
      last = record.span.ts;
    }
    if (drained.empty()) std::this_thread::yield();
  }
  producer.join();
  REQUIRE(in_order_and_whole);
  REQUIRE(received + static_cast<std::int64_t>(ring.dropped_count()) == kPushes);
}

TEST_CASE("a push allocates nothing, whether it fits or not") {
  Ring ring(128);
  const Record record = numbered(1);
  const std::int64_t before = allocation_count();
  for (int i = 0; i < 1000; ++i) ring.try_push(record);
  const std::int64_t allocated = allocation_count() - before;
  REQUIRE(allocated == 0);
  REQUIRE(ring.dropped_count() == 1000 - 128);

  // The count itself works: a ring's own memory shows in it.
  const Ring another(16);
  REQUIRE(allocation_count() > before);
}

// Run with: profiler_record_test "[.speed]"
TEST_CASE("speed of a push", "[.speed]") {
  constexpr int kRounds = 200;
  constexpr std::size_t kRecords = 1 << 16;
  Ring ring(kRecords);
  std::vector<Record> drained;
  drained.reserve(kRecords);
  std::chrono::nanoseconds pushing{0};
  for (int round = 0; round < kRounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < kRecords; ++i)
      ring.try_push(numbered(static_cast<std::int64_t>(i)));
    pushing += std::chrono::steady_clock::now() - start;
    drained.clear();
    ring.drain(drained, kRecords);
  }
  REQUIRE(ring.dropped_count() == 0);
  std::cout << "try_push: " << static_cast<double>(pushing.count()) / (kRounds * double{kRecords})
            << " ns\n";
}

}  // namespace
}  // namespace sluice::record
