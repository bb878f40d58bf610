#include "base/colour.h"

#include <catch2/catch.hpp>

namespace sluice {

TEST_CASE("a colour is written as a page reads it, and read back") {
  CHECK(colour_text(0x4e79a7) == "#4e79a7");
  CHECK(colour_text(0x00000f) == "#00000f");
  CHECK(parse_colour("#4e79a7") == 0x4e79a7);
  CHECK(parse_colour(colour_text(palette::kWaiting.dark)) == palette::kWaiting.dark);
}

TEST_CASE("what is written otherwise is no colour") {
  for (const char* text :
       {"", "#", "4e79a7", "#4e79a", "#4e79a70", "#4E79A7", "#4e79a ", "red;--x"})
    CHECK_FALSE(parse_colour(text));
}

}  // namespace sluice
