#pragma once
// From fp32 to the codes of base/state_format.h and back, one element at a time: the definition, to
// which the kernels are equal to the bit. All arithmetic on bits is modulo 2^32; there is one fp32
// subtraction in decoding a mean and one addition in encoding it, and no other floating-point
// arithmetic.
//
// Bounds: a code is a step away from the next one, and is within half a step of the value where it
// is rounded to the nearest, within a whole one where by chance. A step of `square8` is at most
// 6.3 % of the value, over 16 binades below the group's maximum; one of `mean8` at most 12.5 %
// above 2^(E-7) of the group's exponent E; `low8` is within 2^-15. A square that is not 0 never has
// the code 0, so that m / (sqrt(v) + eps) stays small; it may decode to 0 where the group's maximum
// is below 2^-110, far below any eps.
//
// Thread contract: free functions.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/state_format.h"

namespace sluice {

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
// All elements, in all arrays. Rounded to the nearest, values that were decoded lose nothing.
// `values`: of each decoded array, as many as there are elements. `first_flat_index`: that of the
// first, for the rounding.
void encode(std::span<const std::span<const float>> values, const CodeRounding& rounding,
            std::int64_t first_flat_index, const StoredSpan& stored);

}  // namespace sluice
