#include "profiler/analyze/wall_clock.h"

#include <catch2/catch.hpp>

using sluice::analyze::WallClock;

TEST_CASE("each stretch of a record has the calendar of its own snapshot") {
  WallClock clock({{"monotonic", 1000, 50'000}, {"monotonic", 2000, 90'000}});
  CHECK(clock.realtime_of(1100) == 50'100);
  CHECK(clock.realtime_of(1999) == 50'999);
  CHECK(clock.realtime_of(2001) == 90'001);
}

TEST_CASE("a machine that was restarted begins its clock anew") {
  WallClock clock(
      {{"monotonic", 9000, 100'000}, {"monotonic", 50, 200'000}, {"monotonic", 8000, 300'000}});
  CHECK(clock.realtime_of(9500) == 100'500);
  CHECK(clock.realtime_of(60) == 200'010);
  CHECK(clock.realtime_of(70) == 200'020);
  CHECK(clock.realtime_of(8100) == 300'100);
}

TEST_CASE("a record without a snapshot has the run's own time") {
  WallClock clock{{}};
  CHECK(clock.realtime_of(7) == 7);
}
