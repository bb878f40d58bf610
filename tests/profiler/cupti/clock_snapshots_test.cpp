#include "profiler/cupti/clock_snapshots.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "base/clock.h"

namespace sluice::cupti {
namespace {

constexpr TimeNs kSecond = 1'000'000'000;
constexpr TimeNs kRealtime = 1'700'000'000 * kSecond;

TEST_CASE("a stamp between two snapshots lies on the line between them, to the nanosecond") {
  ClockSnapshots clock;
  clock.add({.monotonic_ts = 100, .realtime_ts = kRealtime});
  // The calendar's clock ran 200 parts in a million too fast.
  clock.add({.monotonic_ts = 100 + kSecond, .realtime_ts = kRealtime + kSecond + 200'000});
  REQUIRE(clock.monotonic_from(kRealtime) == 100);
  REQUIRE(clock.monotonic_from(kRealtime + kSecond + 200'000) == 100 + kSecond);
  REQUIRE(clock.monotonic_from(kRealtime + (kSecond + 200'000) / 2) == 100 + kSecond / 2);
  REQUIRE(clock.monotonic_from(kRealtime + 1) == 101);
}

TEST_CASE("a drift that changes is followed: conversion stays within a microsecond for an hour") {
  const auto realtime_at = [](TimeNs monotonic_ts) {
    const double seconds = static_cast<double>(monotonic_ts) * 1e-9;
    return kRealtime + monotonic_ts + static_cast<TimeNs>(1e6 * std::sin(seconds / 300.0));
  };
  ClockSnapshots clock;
  for (TimeNs second = 0; second <= 3600; ++second)
    clock.add({.monotonic_ts = second * kSecond, .realtime_ts = realtime_at(second * kSecond)});
  REQUIRE(clock.clock_set_count() == 0);
  TimeNs worst = 0;
  for (TimeNs ts = 0; ts < 3600 * kSecond; ts += 333'333'333)
    worst = std::max(worst, std::abs(clock.monotonic_from(realtime_at(ts)) - ts));
  REQUIRE(worst < 1000);
}

TEST_CASE("outside of the snapshots a stamp is as far from the nearest as CUPTI's clock says") {
  ClockSnapshots clock;
  clock.add({.monotonic_ts = 1000, .realtime_ts = kRealtime});
  REQUIRE(clock.monotonic_from(kRealtime - 10) == 990);
  REQUIRE(clock.monotonic_from(kRealtime + 10) == 1010);
  clock.add({.monotonic_ts = 1000 + kSecond, .realtime_ts = kRealtime + kSecond + 500});
  REQUIRE(clock.monotonic_from(kRealtime - 10) == 990);
  REQUIRE(clock.monotonic_from(kRealtime + kSecond + 510) == 1010 + kSecond);
}

TEST_CASE("a clock that was set forwards or backwards does not stretch what was recorded") {
  ClockSnapshots forwards;
  forwards.add({.monotonic_ts = 0, .realtime_ts = kRealtime});
  forwards.add({.monotonic_ts = kSecond, .realtime_ts = kRealtime + 61 * kSecond});
  REQUIRE(forwards.clock_set_count() == 1);
  // Half a second after the first; half a second before the second.
  REQUIRE(forwards.monotonic_from(kRealtime + kSecond / 2) == kSecond / 2);
  REQUIRE(forwards.monotonic_from(kRealtime + 61 * kSecond - kSecond / 2) == kSecond / 2);

  ClockSnapshots backwards;
  backwards.add({.monotonic_ts = 0, .realtime_ts = kRealtime});
  backwards.add({.monotonic_ts = 10 * kSecond, .realtime_ts = kRealtime + 10 * kSecond});
  backwards.add({.monotonic_ts = 11 * kSecond, .realtime_ts = kRealtime + 5 * kSecond});
  backwards.add({.monotonic_ts = 12 * kSecond, .realtime_ts = kRealtime + 6 * kSecond});
  REQUIRE(backwards.clock_set_count() == 1);
  // The stamp was given twice; the newer reading is taken.
  REQUIRE(backwards.monotonic_from(kRealtime + 5 * kSecond + kSecond / 2) ==
          11 * kSecond + kSecond / 2);
  REQUIRE(backwards.monotonic_from(kRealtime + 2 * kSecond) == 2 * kSecond);
}

TEST_CASE("stamps of another day are told apart") {
  ClockSnapshots clock;
  REQUIRE_FALSE(clock.is_near(kRealtime));
  clock.add({.monotonic_ts = 0, .realtime_ts = kRealtime});
  REQUIRE(clock.is_near(kRealtime + 60 * kSecond));
  REQUIRE_FALSE(clock.is_near(kRealtime + 86'400 * kSecond));
  REQUIRE_FALSE(clock.is_near(0));
  REQUIRE_FALSE(clock.is_near(-1));
}

TEST_CASE("snapshots are bounded, and are read on from where one stopped") {
  ClockSnapshots clock(3);
  for (TimeNs i = 0; i < 5; ++i) clock.add({.monotonic_ts = i, .realtime_ts = kRealtime + i});
  REQUIRE(clock.since(0).size() == 3);
  REQUIRE(clock.since(0).front().monotonic_ts == 2);
  REQUIRE(clock.since(4).size() == 1);
  REQUIRE(clock.since(5).empty());
}

TEST_CASE("a snapshot of this machine is bracketed by the run's clock") {
  const TimeNs before = monotonic_now_ns();
  const ClockSnapshot snapshot = take_clock_snapshot();
  const TimeNs after = monotonic_now_ns();
  REQUIRE(snapshot.monotonic_ts >= before);
  REQUIRE(snapshot.monotonic_ts <= after);
  REQUIRE(snapshot.uncertainty_ns >= 0);
  REQUIRE(snapshot.uncertainty_ns <= after - before);
  REQUIRE(snapshot.realtime_ts > kRealtime - 10 * 365 * 86'400 * kSecond);
}

}  // namespace
}  // namespace sluice::cupti
