#include "profiler/analyze/overlap.h"

#include <catch2/catch.hpp>

#include "profiler/analyze/intervals.h"
#include "tests/profiler/analyze/made_step.h"

namespace sluice::analyze {

TEST_CASE("times that touch or overlap are one") {
  Intervals times;
  times.add(10, 20);
  times.add(5, 5);
  times.add(20, 25);
  times.add(0, 4);
  times.add(2, 8);
  CHECK(times.merged() == std::vector<Interval>{{0, 8}, {10, 25}});
  CHECK(times.sum_ns() == 23);
  Intervals others;
  others.add(3, 12);
  others.add(24, 30);
  CHECK(Intervals::both_ns(times, others) == 5 + 2 + 1);
  CHECK(Intervals::both_ns(others, times) == 8);
  Intervals none;
  CHECK(Intervals::both_ns(times, none) == 0);
}

TEST_CASE("overlap is what went on together of what could have") {
  MadeStep made(100);
  made.add("forward", 0, 40);
  made.add("state_read", 20, 80, {.device = 0, .subgroup = 0});
  made.add("collect", 0, 100);
  const Overlap overlap = overlap_of(made.data());
  CHECK(overlap.compute_ns == 40 * kMs);
  CHECK(overlap.transfer_ns == 60 * kMs);
  CHECK(overlap.both_ns == 20 * kMs);
  CHECK(overlap.achieved() == Approx(0.5));
  CHECK(overlap_of(MadeStep(10).data()).achieved() == 1);
}

TEST_CASE("a device that is busy for longer than the others is uneven") {
  MadeStep made(100);
  for (std::int32_t d = 0; d < 4; ++d) {
    const std::int64_t dur_ms = d == 3 ? 60 : 20;
    made.add("state_read", 0, dur_ms, {.device = d, .subgroup = d});
    made.add("update", dur_ms - 10, dur_ms, {.device = d, .subgroup = d});
  }
  const std::vector<DeviceUse> devices = device_use(made.data());
  REQUIRE(devices.size() == 4);
  CHECK(devices[3].busy_ns == 60 * kMs);
  CHECK(devices[3].read_bytes == 60 * kMs);
  CHECK(devices[0].update_ns == 10 * kMs);
  CHECK(imbalance_of(devices) == Approx(2.0));
  CHECK(imbalance_of({}) == 1);
}

}  // namespace sluice::analyze
