#include "base/saturating.h"

#include <catch2/catch.hpp>
#include <cmath>

namespace sluice {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();

TEST_CASE("what fits into 64 bits is what it is, and what does not is the end of them") {
  CHECK(saturating_sum(2, 3) == 5);
  CHECK(saturating_sum(kMost, 0) == kMost);
  CHECK(saturating_sum(kMost, 1) == kMost);
  CHECK(saturating_sum(kLeast, -1) == kLeast);
  CHECK(saturating_sum(kMost, kLeast) == -1);
}

TEST_CASE("a real number outside of 64 bits is their end, and what is none is 0") {
  CHECK(saturating_whole(2.9) == 2);
  CHECK(saturating_whole(-2.9) == -2);
  CHECK(saturating_whole(9223372036854775807.0) == kMost);  // which is 2^63
  CHECK(saturating_whole(std::nextafter(9223372036854775808.0, 0)) == kMost - 1023);
  CHECK(saturating_whole(1e300) == kMost);
  CHECK(saturating_whole(-1e300) == kLeast);
  CHECK(saturating_whole(INFINITY) == kMost);
  CHECK(saturating_whole(NAN) == 0);
}

}  // namespace
}  // namespace sluice
