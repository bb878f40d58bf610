#include "gui/data/device_shares.h"

#include <catch2/catch.hpp>

namespace sluice::gui {

using Counts = std::vector<std::int64_t>;
using Shares = std::vector<double>;

TEST_CASE("subgroups are divided by the largest remainders, and a share of 0 gets none") {
  CHECK(subgroups_under(50, {1, 1, 1, 1}) == Counts{13, 13, 12, 12});
  CHECK(subgroups_under(50, {3, 1, 1, 1}) == Counts{25, 9, 8, 8});
  CHECK(subgroups_under(7, {0, 1, 0, 1}) == Counts{0, 4, 0, 3});
  CHECK(subgroups_under(0, {1, 1}) == Counts{0, 0});
}

TEST_CASE("what is moved is exact: the shares divide into the counts meant") {
  const Counts even = subgroups_under(50, {1, 1, 1, 1});
  const Shares moved = shares_after_move(even, 0, 3, 4);
  CHECK(moved == Shares{9, 13, 12, 16});
  CHECK(subgroups_under(50, moved) == Counts{9, 13, 12, 16});
  CHECK(shares_after_move(even, 2, 0, 100) == Shares{25, 13, 0, 12});  // all there are: drained
  CHECK(shares_after_move(even, 1, 1, 5) == Shares{13, 13, 12, 12});
}

}  // namespace sluice::gui
