#include "base/state_codec.h"

#include <catch2/catch.hpp>
#include <vector>

namespace sluice {
namespace {

// The arrays of some elements, in memory of their own.
class Stored {
 public:
  Stored(const std::vector<ArrayCode>& codes, std::int64_t element_count) {
    span_.element_count = element_count;
    for (const ArrayCode code : codes) {
      const auto at = static_cast<std::size_t>(span_.arrays.count++);
      span_.arrays.codes[at] = code;
      bytes_[at].resize(static_cast<std::size_t>(array_bytes(code, element_count)));
      span_.data[at] = bytes_[at].data();
    }
  }
  const StoredSpan& span() const { return span_; }

 private:
  std::array<std::vector<std::byte>, kMaxStoredArrays> bytes_;
  StoredSpan span_;
};

std::vector<float> decoded(const Stored& stored, std::int32_t variable) {
  std::vector<float> values(static_cast<std::size_t>(stored.span().element_count));
  decode(stored.span(), variable, 0, values);
  return values;
}

TEST_CASE("exact keeps every bit of a master weight, ties included") {
  std::vector<float> weights;
  for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32); bits += 9973) {
    const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    if (value == value) weights.push_back(value);
  }
  for (std::uint32_t high = 0; high < 0x7f80; ++high) {
    weights.push_back(std::bit_cast<float>(high << 16 | 0x8000u));
    weights.push_back(std::bit_cast<float>(high << 16 | 0x80008000u));
  }
  std::vector<float> squares(weights.size());
  for (std::size_t i = 0; i < squares.size(); ++i) squares[i] = static_cast<float>(i % 7) * 0.125F;
  const std::vector<std::span<const float>> values = {weights, squares};
  for (const bool in_sign : {true, false}) {
    Stored stored(in_sign
                      ? std::vector{ArrayCode::high, ArrayCode::low16, ArrayCode::fp32_with_ties}
                      : std::vector{ArrayCode::high, ArrayCode::low16_with_ties, ArrayCode::fp32},
                  std::ssize(weights));
    encode(values, CodeRounding::nearest(), 0, stored.span());
    const std::vector<float> back = decoded(stored, 0);
    int different = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      different +=
          std::bit_cast<std::uint32_t>(back[i]) != std::bit_cast<std::uint32_t>(weights[i]);
    }
    CHECK(different == 0);
    CHECK(decoded(stored, 1) == squares);
  }
}

}  // namespace
}  // namespace sluice
