#pragma once
// The meaning of keeping the largest elements of a gradient.
//
// Elements are ordered by magnitude: the bits of the fp32 value without its sign, compared as an
// unsigned number. So NaN ranks above infinity and infinity above every finite value (what is wrong
// is sent, never hidden), -0 equals +0, and subnormals count. Equal magnitudes are ordered by
// index: the lower one is kept first. The order is total, so which k elements are kept does not
// depend on threads, slices or SIMD width.
//
// Thread contract: free functions and plain data.

#include <bit>
#include <cstdint>
#include <span>

namespace sluice::compress {

// An index is a uint32, and counts of magnitudes are too.
inline constexpr std::int64_t kMaxElements = std::int64_t{1} << 31;

constexpr std::uint32_t magnitude_of(float value) {
  return std::bit_cast<std::uint32_t>(value) & 0x7fffffffu;
}

// How many of `element_count` elements a density keeps: ceil(density x element_count), but at least
// 1 of 1 or more. The density is first rounded to a billionth, and the rest is done in integers:
// 0.01 means a hundredth and keeps 1 of 100, although the double nearest to 0.01 is larger.
std::int64_t kept_count(double density, std::int64_t element_count);

// Where kept elements go: two arrays with room for `capacity` elements. They are written ascending
// by index, and values with all their bits.
struct KeptRoom {
  std::uint32_t* indices = nullptr;
  float* values = nullptr;
  std::int64_t capacity = 0;
};

struct KeptElements {
  std::span<const std::uint32_t> indices;
  std::span<const float> values;
};

}  // namespace sluice::compress
