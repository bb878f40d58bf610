#pragma once
// How the arrays of an optimizer's state are stored: as fp32, or in fewer bytes. What is computed
// with is fp32 in all formats; base/state_codec.h is the way from one to the other, and
// docs/state_format.md the page of the bytes.
//
//   fp32     every array in fp32
//   exact    the master weight is the bf16 copy, `high`, and what that does not say, `low`;
//            nothing is lost
//   compact  and the other arrays in 8 bits, with a scale for each group, or in bf16: other
//            numbers than fp32's
//
// A *group* is 64 consecutive elements, a *block* 64 groups: a scale stands behind the codes of its
// block, so that an array is read and written from its begin to its end, and a block can be found.
// Groups begin at multiples of 64 of the flat elements, so numbers depend on no subgroup.
//
// Thread contract: plain values and free functions.

#include <array>
#include <cstdint>
#include <string>

namespace sluice {

enum class StateFormatKind : std::uint8_t { fp32, exact, compact };

struct StateFormat {
  StateFormatKind kind = StateFormatKind::fp32;
  std::int64_t remainder_bits = 16;  // of `low`, 16 or 8; 8 with compact alone

  // The master weight is in two arrays, and its 16-bit copy is one of them.
  bool is_split() const { return kind != StateFormatKind::fp32; }
  friend bool operator==(const StateFormat&, const StateFormat&) = default;
};

// What is in a stored array. The values are those in a state's file header.
enum class ArrayCode : std::uint8_t {
  fp32 = 0,
  high = 1,             // the bf16 copy of the master weight
  low16 = 2,            // the low half of its bits
  low16_with_ties = 3,  // and a bit an element, 64 a group: the copy was rounded down from a tie
  low8 = 4,             // the 8 bits below the copy
  fp32_with_ties = 5,   // never negative, so that its sign bit is the tie's
  mean8 = 6,            // signed, 8 bits: mu-law, with the group's exponent
  square8 = 7,          // never negative, 8 bits: 16 steps a binade below the group's maximum
  bf16 = 8,             // never negative, the upper half of the bits
};
inline constexpr int kArrayCodeCount = 9;

inline constexpr std::int64_t kGroupElements = 64;
inline constexpr std::int64_t kBlockGroups = 64;
inline constexpr std::int64_t kBlockElements = kGroupElements * kBlockGroups;

// Bytes of an element, and of a group beside its elements.
struct ArrayWidth {
  std::int64_t element_bytes = 4;
  std::int64_t group_bytes = 0;
};
constexpr ArrayWidth width_of(ArrayCode code) {
  switch (code) {
    case ArrayCode::fp32:
    case ArrayCode::fp32_with_ties:
      break;
    case ArrayCode::high:
    case ArrayCode::low16:
    case ArrayCode::bf16:
      return {2, 0};
    case ArrayCode::low16_with_ties:
      return {2, 8};
    case ArrayCode::low8:
      return {1, 0};
    case ArrayCode::mean8:
      return {1, 1};
    case ArrayCode::square8:
      return {1, 4};
  }
  return {4, 0};
}

// Without padding. Codes with something a group hold whole groups.
constexpr std::int64_t array_bytes(ArrayCode code, std::int64_t element_count) {
  const ArrayWidth width = width_of(code);
  if (width.group_bytes == 0) return element_count * width.element_bytes;
  const std::int64_t groups = (element_count + kGroupElements - 1) / kGroupElements;
  return groups * (kGroupElements * width.element_bytes + width.group_bytes);
}

inline constexpr int kMaxStoredArrays = 4;

// The arrays of a state in the order in which they are stored. If the first is `high`, the second
// is its remainder, and the two are the master weights.
struct StoredArrays {
  std::int32_t count = 0;
  std::array<ArrayCode, kMaxStoredArrays> codes{};  // as many; the rest are fp32

  bool is_split() const { return codes[0] == ArrayCode::high; }
  // The number of arrays in fp32 that they stand for.
  std::int32_t decoded_count() const { return is_split() ? count - 1 : count; }
  // Bytes of one element in all arrays, scales included.
  double bytes_per_element() const {
    double bytes = 0;
    for (std::int32_t a = 0; a < count; ++a) {
      const ArrayWidth width = width_of(codes[static_cast<std::size_t>(a)]);
      bytes += static_cast<double>(width.element_bytes) +
               static_cast<double>(width.group_bytes) / static_cast<double>(kGroupElements);
    }
    return bytes;
  }
  friend bool operator==(const StoredArrays&, const StoredArrays&) = default;
};

// The bits that round one element's codes. Lowest 19: `square8`; from 13: `mean8`; bits 8 to 15:
// `low8`; lowest 16: `bf16`.
// Its means, neighbours and successive updates are looked at in tests/base/state_codec_test.cpp.
constexpr std::uint32_t mixed(std::uint32_t x, std::uint32_t key) {
  std::uint32_t h = x * 0x9E3779B1u + key;
  h ^= h >> 15;
  h *= 0x2C1B3C6Du;
  h ^= h >> 12;
  h *= 0x297A2D39u;
  h ^= h >> 15;
  return h;
}

// How codes are rounded: by a hash of the run's seed, the number of the update and the flat index,
// so that a step that is taken again has the same; or to the nearest, where a state is converted.
class CodeRounding {
 public:
  static constexpr CodeRounding nearest() { return {}; }
  // `optimizer_step` from 1.
  static constexpr CodeRounding of_step(std::uint64_t seed, std::int64_t optimizer_step) {
    CodeRounding rounding;
    rounding.is_stochastic_ = true;
    rounding.key_ =
        mixed(static_cast<std::uint32_t>(optimizer_step),
              mixed(static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)));
    return rounding;
  }

  bool is_stochastic() const { return is_stochastic_; }
  std::uint32_t key() const { return key_; }
  // The key of an element: its bits are mixed(low half of the flat index, this).
  constexpr std::uint32_t key_of(std::uint64_t flat_index) const {
    return key_ ^ (static_cast<std::uint32_t>(flat_index >> 32) * 0x85EBCA77u);
  }
  constexpr std::uint32_t bits(std::int64_t flat_index) const {
    const auto i = static_cast<std::uint64_t>(flat_index);
    return mixed(static_cast<std::uint32_t>(i), key_of(i));
  }
  friend bool operator==(const CodeRounding&, const CodeRounding&) = default;

 private:
  bool is_stochastic_ = false;
  std::uint32_t key_ = 0;
};

// Whether a state has such arrays; for what a file says.
bool makes_sense(const StoredArrays& stored);
// The format that has these arrays.
StateFormat format_of(const StoredArrays& stored);
// "fp32", "exact", "compact, with remainders of 16 bits".
std::string format_text(const StateFormat& format);

}  // namespace sluice
