#pragma once
// From fp32 to the codes of base/state_format.h and back, one element at a time: the definition, to
// which the kernels are equal to the bit. All arithmetic on bits is modulo 2^32; there is one fp32
// subtraction in decoding a mean and one addition in encoding it, and no other floating-point
// arithmetic.
//
// Bounds, of a stochastic code twice as much: `square8` within 3.1 % of the value over 16 binades
// below the group's maximum, and what is not 0 never has the code 0, so that m / (sqrt(v) + eps)
// stays small; `mean8` within 5.9 % above 2^(E-7) of the group's exponent E; `low8` within 2^-15.
//
// Thread contract: free functions.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/state_format.h"

namespace sluice {

// The bits that round one element's codes. Lowest 19: `square8`; from 13: `mean8`; bits 8 to 15:
// `low8`; lowest 16: `bf16`.
//
// Integer hash of two multiplications (public domain "lowbias32" constants).
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
  // Of the elements of one half of flat indices: mixed(low half of the index, this).
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

// The stored arrays of some elements, the first of which begins a block.
struct StoredSpan {
  StoredArrays arrays;
  std::array<std::byte*, kMaxStoredArrays> data{};
  std::int64_t element_count = 0;
};

// Where the codes of a group lie in its array, and what the group has beside them.
struct GroupPlace {
  std::int64_t codes_bytes = 0;
  std::int64_t scale_bytes = 0;
};
// `group` of an array of `element_count`.
GroupPlace place_of_group(ArrayCode code, std::int64_t group, std::int64_t element_count);

// Elements [first, first + out.size()) of the decoded array `variable` (0: the master weights).
// `first` is a multiple of 64.
void decode(const StoredSpan& stored, std::int32_t variable, std::int64_t first,
            std::span<float> out);
// All elements, in all arrays. `values`: of each decoded array, as many as there are elements.
// `first_flat_index`: that of the first, for the rounding.
void encode(std::span<const std::span<const float>> values, const CodeRounding& rounding,
            std::int64_t first_flat_index, const StoredSpan& stored);

}  // namespace sluice
