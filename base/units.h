#pragma once
// Quantities as people write and read them. Inside the program: bytes and elements are std::int64_t
// with the unit in the name, times are integer nanoseconds, rates are double per second.
//
// Thread contract: free functions, any thread.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace sluice {

using TimeNs = std::int64_t;  // nanoseconds; of which clock is said where it is used

inline constexpr std::int64_t kPageBytes =
    4096;  // alignment of O_DIRECT transfers, buffers and extents

constexpr std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}
constexpr std::int64_t round_down(std::int64_t value, std::int64_t multiple) {
  return value / multiple * multiple;
}
constexpr std::int64_t divide_up(std::int64_t value, std::int64_t divisor) {
  return (value + divisor - 1) / divisor;
}

std::string format_bytes(std::int64_t bytes);  // "1.50 GB" (powers of 1000)
std::string format_count(double count);        // "124 M"
std::string format_duration(TimeNs dur_ns);    // "1.25 s", "350 us", "2 min 05 s"
// The same; what is longer than TimeNs holds (292 years) is said as that.
std::string format_seconds(double seconds);
// "3.00 GB/s"
std::string format_rate(double per_second, std::string_view unit = "B/s");
// For files, which read it back: with at most `digits` digits, without zeros behind.
std::string rate_text(double per_second, std::string_view unit, int digits);

// "2GiB", "64 MiB", "4 GB", "4096": a plain number is bytes.
Result<std::int64_t> parse_bytes(std::string_view text);
// "3.0 GB/s", "100MB/s", "1 GiB/s".
Result<double> parse_byte_rate(std::string_view text);
// "0.51 Gelem/s", "420 GFLOP/s": a number, a decimal prefix (none, k, M, G, T, P) and the unit
// asked for.
Result<double> parse_rate(std::string_view text, std::string_view unit);
// "5 us", "80us", "1.5 ms", "2 s".
Result<TimeNs> parse_duration(std::string_view text);

}  // namespace sluice
