#pragma once
// Arithmetic that stays at the end of 64 bits where it would leave them, for times that platforms
// and scales make as long as they like.
//
// Thread contract: free functions.

#include <cstdint>
#include <limits>

namespace sluice {

constexpr std::int64_t saturating_sum(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return a < 0 ? std::numeric_limits<std::int64_t>::min()
               : std::numeric_limits<std::int64_t>::max();
}

// The whole part; of what is no number, 0.
constexpr std::int64_t saturating_whole(double value) {
  constexpr double kEnd = 9223372036854775808.0;  // 2^63: the first that is too large
  if (value >= kEnd) return std::numeric_limits<std::int64_t>::max();
  if (value < -kEnd) return std::numeric_limits<std::int64_t>::min();
  return value == value ? static_cast<std::int64_t>(value) : 0;
}

}  // namespace sluice
