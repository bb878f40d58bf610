// When figures by the emulated clock are this computer's, and the time scale that would do.

#include "storage/rundb/lateness.h"

#include <array>
#include <catch2/catch.hpp>

namespace sluice::rundb {
namespace {

LatenessRow lateness_row(const char* stage, std::int64_t operations, std::int64_t late,
                         TimeNs modelled_ns, TimeNs late_ns) {
  return {0, stage, operations, late, modelled_ns, late_ns};
}

}  // namespace

TEST_CASE("figures are late from a twentieth of the operations, or a fiftieth of their time, on") {
  CHECK_FALSE(LatenessSum().is_late());
  CHECK_FALSE(LatenessSum{1000, 50, 10'000, 200}.is_late());
  CHECK(LatenessSum{1000, 51, 10'000, 0}.is_late());
  CHECK(LatenessSum{1000, 1, 10'000, 201}.is_late());
  CHECK(LatenessSum{256'060, 179'242, 1000, 450}.words() ==
        "70.0 % of 256 060 modelled operations ended late, all together by 45 % of their time");
}

TEST_CASE("what took many times as long is said in times") {
  CHECK(LatenessSum{100, 78, 1000, 237'000}.words() ==
        "78.0 % of 100 modelled operations ended late, all together by 237 times their time");
}

TEST_CASE("the time scale that would do is that of the stage which exceeded its time most") {
  const std::array rows = {lateness_row("update", 100, 90, 1000, 1000),
                           lateness_row("state_read", 50, 5, 4000, 400)};
  CHECK(sum_of(rows).operations == 150);
  CHECK(sum_of(rows).late_share() == Approx(95.0 / 150));
  CHECK(sum_of(rows).time_share() == Approx(0.28));
  CHECK(needed_time_scale(rows, 20) == 44);  // twice as slow, and a tenth to spare
  CHECK(needed_time_scale(rows, 0.5) == 1.1);
  // What is late by little in all does not decide, however much it exceeds its own time.
  const std::array with_one_more = {rows[0], rows[1], lateness_row("gradient", 10, 10, 1, 100)};
  CHECK(needed_time_scale(with_one_more, 20) == 44);
  const std::array on_time = {lateness_row("update", 100, 0, 1000, 0)};
  CHECK(needed_time_scale(on_time, 20) == 20);
  CHECK(needed_time_scale({}, 7) == 7);
}

}  // namespace sluice::rundb
