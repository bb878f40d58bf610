#include "profiler/report/detail/event_file.h"

#include <catch2/catch.hpp>

namespace sluice::report::detail {

TEST_CASE("checksums are those of RFC 3720, appendix B.4") {
  CHECK(crc32c(std::string(32, '\0')) == 0x8a9136aa);
  CHECK(crc32c(std::string(32, '\xff')) == 0x62a8ab43);
  std::string ascending;
  for (char byte = 0; byte < 32; ++byte) ascending += byte;
  CHECK(crc32c(ascending) == 0x46dd794e);
  CHECK(crc32c("123456789") == 0xe3069283);
}

TEST_CASE("a scalar is the bytes that protocol buffers give it") {
  const std::string record = scalar_event(1.0, 300, "a", 0.5F);
  // wall_time 1.0, step 300, summary {value {tag "a" simple_value 0.5}}.
  const std::string event(
      "\x09\0\0\0\0\0\0\xf0\x3f\x10\xac\x02\x2a\x0a\x0a\x08\x0a\x01"
      "a\x15\0\0\0\x3f",
      24);
  REQUIRE(record.size() == 8 + 4 + event.size() + 4);
  CHECK(record.substr(0, 8) == std::string("\x18\0\0\0\0\0\0\0", 8));
  CHECK(record.substr(12, event.size()) == event);
}

}  // namespace sluice::report::detail
