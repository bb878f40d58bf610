#include "base/units.h"

#include <catch2/catch.hpp>
#include <limits>

namespace sluice {
namespace {

TEST_CASE("bytes are read with decimal and binary units") {
  CHECK(*parse_bytes("4096") == 4096);
  CHECK(*parse_bytes("2GiB") == std::int64_t{2} << 30);
  CHECK(*parse_bytes(" 64 MiB ") == std::int64_t{64} << 20);
  CHECK(*parse_bytes("4 GB") == 4'000'000'000);
  CHECK(*parse_bytes("1.5 kB") == 1500);
  CHECK(*parse_bytes("1.5 KB") == 1500);
  CHECK(*parse_bytes("0") == 0);
}

TEST_CASE("what is not a number of bytes is refused with the way to write it") {
  for (const char* text : {"", "GiB", "4 gigabytes", "4 Gi", "1e400", "nan", "-1", "1e30 GB"}) {
    CAPTURE(text);
    const Result<std::int64_t> bytes = parse_bytes(text);
    REQUIRE_FALSE(bytes.ok());
    CHECK(bytes.error().code() == ErrorCode::config);
  }
  CHECK(parse_bytes("4 gigabytes").error().message().find("GiB") != std::string::npos);
}

TEST_CASE("a duration at either end of what a number holds is written") {
  CHECK(format_duration(std::numeric_limits<TimeNs>::max()) == "2562047 h 47 min");
  CHECK(format_seconds(0.0125) == "12.5 ms");
  CHECK(format_seconds(1e300) == "2562047 h 47 min");
  CHECK(format_duration(-std::numeric_limits<TimeNs>::max()) == "-2562047 h 47 min");
  CHECK(format_duration(std::numeric_limits<TimeNs>::min()) == "-2562047 h 47 min");
}

TEST_CASE("rates are read with their unit") {
  CHECK(*parse_byte_rate("3.0 GB/s") == 3e9);
  CHECK(*parse_byte_rate("100MB/s") == 1e8);
  CHECK(*parse_byte_rate("1 GiB/s") == 1073741824.0);
  CHECK_FALSE(parse_byte_rate("3 GB").ok());
  CHECK_FALSE(parse_byte_rate("3 Gbit/s").ok());
  CHECK(*parse_rate("0.51 Gelem/s", "elem/s") == 0.51e9);
  CHECK(*parse_rate("420 GFLOP/s", "FLOP/s") == 420e9);
  CHECK(*parse_rate("7 elem/s", "elem/s") == 7);
  CHECK_FALSE(parse_rate("420 GFLOP/s", "elem/s").ok());
  CHECK_FALSE(parse_rate("420", "elem/s").ok());
}

TEST_CASE("durations are read in ns, us, ms and s") {
  CHECK(*parse_duration("80us") == 80'000);
  CHECK(*parse_duration("5 us") == 5'000);
  CHECK(*parse_duration("1.5 ms") == 1'500'000);
  CHECK(*parse_duration("2 s") == 2'000'000'000);
  CHECK(*parse_duration("7 ns") == 7);
  CHECK_FALSE(parse_duration("7").ok());
  CHECK_FALSE(parse_duration("7 minutes").ok());
  CHECK_FALSE(parse_duration("1e30 s").ok());
  CHECK_FALSE(parse_duration("-1 s").ok());
}

TEST_CASE("quantities are written with three digits and a unit") {
  CHECK(format_bytes(0) == "0 B");
  CHECK(format_bytes(999) == "999 B");
  CHECK(format_bytes(1'500'000'000) == "1.50 GB");
  CHECK(format_bytes(12'340'000) == "12.3 MB");
  CHECK(format_bytes(999'600) == "1.00 MB");
  CHECK(format_count(124'400'000) == "124 M");
  CHECK(format_count(7) == "7");
  CHECK(format_rate(3e9) == "3.00 GB/s");
}

TEST_CASE("durations are written in the unit that people would use") {
  CHECK(format_duration(0) == "0 ns");
  CHECK(format_duration(999) == "999 ns");
  CHECK(format_duration(350'000) == "350 us");
  CHECK(format_duration(999'900) == "1 ms");
  CHECK(format_duration(999'900'000) == "1 s");
  CHECK(format_duration(1'250'000'000) == "1.25 s");
  CHECK(format_duration(59'990'000'000) == "1 min 00 s");
  CHECK(format_duration(125'000'000'000) == "2 min 05 s");
  CHECK(format_duration(3'660'000'000'000) == "1 h 01 min");
  CHECK(format_duration(-350'000) == "-350 us");
}

TEST_CASE("rounding to a multiple keeps multiples and moves the rest") {
  CHECK(round_up(0, 4096) == 0);
  CHECK(round_up(1, 4096) == 4096);
  CHECK(round_up(4096, 4096) == 4096);
  CHECK(round_down(4095, 4096) == 0);
  CHECK(round_down(4097, 4096) == 4096);
  CHECK(divide_up(0, 16) == 0);
  CHECK(divide_up(1, 16) == 1);
  CHECK(divide_up(17, 16) == 2);
}

}  // namespace
}  // namespace sluice
