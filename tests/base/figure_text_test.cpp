#include "base/figure_text.h"

#include <catch2/catch.hpp>
#include <limits>

#include "base/units.h"

namespace sluice {

TEST_CASE("a whole number has its thousands apart") {
  CHECK(format_whole(0) == "0");
  CHECK(format_whole(999) == "999");
  CHECK(format_whole(1000) == "1 000");
  CHECK(format_whole(3'257'856) == "3 257 856");
  CHECK(format_whole(-100) == "-100");
  CHECK(format_whole(-100'000) == "-100 000");
  CHECK(format_whole(std::numeric_limits<std::int64_t>::max()) == "9 223 372 036 854 775 807");
}

TEST_CASE("a size that may not be less is rounded up, and read back") {
  CHECK(size_text(311'286'080) == "297MiB");
  CHECK(size_text(1) == "1KiB");
  CHECK(size_text(40'960) == "40KiB");
  for (const std::int64_t bytes : {1LL, 1024LL, 70'000'000LL, 311'286'080LL, 12'345'678'901LL}) {
    const Result<std::int64_t> read = parse_bytes(size_text(bytes));
    REQUIRE(read.ok());
    CHECK(*read >= bytes);
    CHECK(*read < bytes + (std::int64_t{1} << 20));
  }
}

}  // namespace sluice
