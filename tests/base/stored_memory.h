#pragma once
// The stored arrays of some elements in memory of their own, for tests of codecs and kernels.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/state_codec.h"

namespace sluice {

class StoredMemory {
 public:
  // Each byte is `filling`.
  StoredMemory(const StoredArrays& arrays, std::int64_t element_count,
               std::byte filling = std::byte{0})
      : arrays_(arrays), element_count_(element_count) {
    for (std::size_t a = 0; a < static_cast<std::size_t>(arrays.count); ++a) {
      bytes[a].assign(static_cast<std::size_t>(array_bytes(arrays.codes[a], element_count)),
                      filling);
    }
  }
  StoredMemory(const std::vector<ArrayCode>& codes, std::int64_t element_count)
      : StoredMemory(arrays_of(codes), element_count) {}

  StoredSpan span() {
    StoredSpan span{arrays_, {}, element_count_};
    for (std::size_t a = 0; a < bytes.size(); ++a) span.data[a] = bytes[a].data();
    return span;
  }
  std::vector<float> decoded(std::int32_t variable) {
    std::vector<float> values(static_cast<std::size_t>(element_count_));
    decode(span(), variable, 0, values);
    return values;
  }
  void encode(const std::vector<std::vector<float>>& values, const CodeRounding& rounding,
              std::int64_t first_flat_index = 0) {
    const std::vector<std::span<const float>> spans(values.begin(), values.end());
    sluice::encode(spans, rounding, first_flat_index, span());
  }

  std::array<std::vector<std::byte>, kMaxStoredArrays> bytes;

 private:
  static StoredArrays arrays_of(const std::vector<ArrayCode>& codes) {
    StoredArrays arrays;
    for (const ArrayCode code : codes)
      arrays.codes[static_cast<std::size_t>(arrays.count++)] = code;
    return arrays;
  }

  StoredArrays arrays_;
  std::int64_t element_count_;
};

}  // namespace sluice
