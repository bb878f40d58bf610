// Ranks find how far their clocks are apart, within the bound that they name, however late their
// messages come.

#include "core/train/clock_offset.h"

#include <catch2/catch.hpp>
#include <cstdlib>

#include "base/clock.h"
#include "tests/core/train/rank_world.h"

using namespace sluice;

TEST_CASE("clocks that are planted apart are found, within the bound") {
  constexpr TimeNs kHour = 3'600'000'000'000;
  const std::vector<TimeNs> planted = {0, 5'000'000, -7 * kHour, 3 * kHour};
  for (const std::int64_t delay_polls : {0, 20}) {
    for (const std::uint64_t seed : {1, 2, 3}) {
      INFO(delay_polls << " polls, seed " << seed);
      const auto found = on_ranks<train::ClockOffset>(
          {.rank_count = 4, .seed = seed, .delay_polls_max = delay_polls},
          [&](train::Ranks& ranks) {
            const TimeNs behind_ns = planted[static_cast<std::size_t>(ranks.rank())];
            return train::measure_clock_offset(
                ranks, [behind_ns] { return monotonic_now_ns() - behind_ns; });
          });
      for (std::size_t rank = 0; rank < planted.size(); ++rank) {
        REQUIRE(found[rank].ok());
        const train::ClockOffset& offset = *found[rank];
        INFO("rank " << rank << ": " << offset.offset_ns << " +- " << offset.bound_ns);
        CHECK(std::abs(offset.offset_ns - planted[rank]) <= offset.bound_ns);
        CHECK(offset.bound_ns >= 0);
        if (rank == 0) CHECK(offset.bound_ns == 0);
        CHECK(std::abs(offset.ts + planted[rank] - monotonic_now_ns()) < kHour);
      }
    }
  }
}

TEST_CASE("of many messages the fastest of each way makes the bound") {
  // Clocks that are counted, not read: a look at a clock is a nanosecond, and a rank's is a
  // thousand behind rank 0's. Their messages take no time but the looks.
  const auto found = on_ranks<train::ClockOffset>({.rank_count = 2}, [](train::Ranks& ranks) {
    TimeNs ts = ranks.is_first() ? 1000 : 0;
    return train::measure_clock_offset(ranks, [&ts] { return ts += 1; });
  });
  REQUIRE(found[1].ok());
  CHECK(std::abs(found[1]->offset_ns - 1000) <= found[1]->bound_ns);
  CHECK(found[1]->bound_ns <= 2);
}
