// Figures in sentences: no line is broken between one and its unit.

#include "gui/widgets/figures.h"

#include <catch2/catch.hpp>

namespace sluice::gui {

TEST_CASE("a figure and its unit are not parted, and words are") {
  CHECK(with_units_kept("shorter by 2 %.") == "shorter by 2\u2009%.");
  CHECK(with_units_kept("1.6 s, was 2 min 05 s") == "1.6\u2009s, was 2\u2009min 05\u2009s");
  CHECK(with_units_kept("17 MB/s of 200 MB/s") == "17\u2009MB/s of 200\u2009MB/s");
  CHECK(with_units_kept("4 steps and 2 more") == "4 steps and 2 more");
  CHECK(with_units_kept("% s") == "% s");
  CHECK(with_units_kept("12 ") == "12 ");
}

}  // namespace sluice::gui
