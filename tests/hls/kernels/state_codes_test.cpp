// Codes of one element against base/state_codec.h, all of them where that is possible.

#include "hls/kernels/state_codes.h"

#include <catch2/catch.hpp>
#include <random>
#include <vector>

#include "base/state_codec.h"

using namespace sluice;
using namespace sluice::hls_kernels;

namespace {

// One group of a compact AdamW state; the others of its arrays are zero.
struct CodedGroup {
  std::array<std::uint16_t, 64> high{}, low{};
  std::array<std::uint8_t, 128> mean{}, square{};  // scales behind the codes

  StoredSpan span() {
    StoredSpan span{.arrays = {.count = 4,
                               .codes = {ArrayCode::high, ArrayCode::low16, ArrayCode::mean8,
                                         ArrayCode::square8}},
                    .element_count = 64};
    span.data = {
        reinterpret_cast<std::byte*>(high.data()), reinterpret_cast<std::byte*>(low.data()),
        reinterpret_cast<std::byte*>(mean.data()), reinterpret_cast<std::byte*>(square.data())};
    return span;
  }
  std::vector<float> decoded(std::int32_t variable) {
    std::vector<float> values(64);
    decode(span(), variable, 0, values);
    return values;
  }
};

bool is_same(std::uint32_t bits, float value) {
  return is_nan(bits) ? value != value : std::bit_cast<std::uint32_t>(value) == bits;
}

}  // namespace

TEST_CASE("every code of a mean is decoded as the codec does, with every exponent") {
  int different = 0;
  CodedGroup group;
  for (std::uint32_t exponent = 0; exponent < 256; ++exponent) {
    for (std::uint32_t first = 0; first < 256; first += 64) {
      for (std::uint32_t i = 0; i < 64; ++i) group.mean[i] = static_cast<std::uint8_t>(first + i);
      group.mean[64] = static_cast<std::uint8_t>(exponent);
      const std::vector<float> values = group.decoded(1);
      for (std::uint32_t i = 0; i < 64; ++i) {
        different += is_same(decoded_mean(first + i, exponent), values[i]) ? 0 : 1;
      }
    }
  }
  CHECK(different == 0);
}

TEST_CASE("every code of a square is decoded as the codec does") {
  std::mt19937 random(1);
  int different = 0;
  CodedGroup group;
  for (int round = 0; round < 2000; ++round) {
    // Near the edges of the exponents, too.
    const std::uint32_t noise = random() & 0x7fffffffu;
    const std::uint32_t largest = round % 4 == 0 ? noise % 0x9000000u : noise;
    for (std::uint32_t i = 0; i < 64; ++i) {
      group.square[i] = static_cast<std::uint8_t>(64 * (round % 4) + i);
    }
    std::memcpy(&group.square[64], &largest, 4);
    const std::vector<float> values = group.decoded(2);
    for (std::uint32_t i = 0; i < 64; ++i) {
      different += is_same(decoded_square(group.square[i], largest), values[i]) ? 0 : 1;
    }
  }
  CHECK(different == 0);
}

TEST_CASE(
    "magnitudes add as the processor's do, halves of a step and what is just above among them") {
  std::mt19937 random(3);
  int different = 0;
  for (int round = 0; round < 200'000; ++round) {
    const std::uint32_t mantissas[] = {0, 1, 0x400000, 0x7fffff,
                                       static_cast<std::uint32_t>(random()) & 0x7fffffu};
    const auto any = [&] { return mantissas[random() % std::size(mantissas)]; };
    const auto exponent = static_cast<std::uint32_t>(1 + random() % 254);
    const auto below = static_cast<std::uint32_t>(random() % 30);
    const std::uint32_t a = exponent << 23 | any();
    const std::uint32_t b = (exponent > below ? exponent - below : 0) << 23 | any();
    const float sum = std::bit_cast<float>(a) + std::bit_cast<float>(b);
    different += is_same(sum_of_magnitudes(a, b), sum) ? 0 : 1;
    different += is_same(sum_of_magnitudes(b, a), sum) ? 0 : 1;
  }
  CHECK(different == 0);
  CHECK(sum_of_magnitudes(kInfinity, 1u) == kInfinity);
  CHECK(sum_of_magnitudes(kNan, 0x800000u) == kNan);
}

TEST_CASE("means and squares of any spread are encoded as the codec does") {
  std::mt19937_64 random(2);
  const CodeRounding rounding = CodeRounding::of_step(7, 11);
  int different = 0;
  for (int round = 0; round < 4000; ++round) {
    CodedGroup group;
    std::vector<float> zeros(64), means(64), squares(64);
    const auto top = static_cast<int>(random() % 256);
    std::uint32_t largest_mean = 0;
    std::uint32_t largest_square = 0;
    for (std::size_t i = 0; i < 64; ++i) {
      // Exponents down from the group's, subnormals and infinities at the ends.
      const int exponent = std::max(top - static_cast<int>(random() % 40), 0);
      const auto mantissa =
          static_cast<std::uint32_t>(random()) & (exponent == 255 ? 0 : 0x7fffffu);
      const std::uint32_t bits = static_cast<std::uint32_t>(exponent) << 23 | mantissa;
      means[i] = std::bit_cast<float>(bits | (random() % 2 == 0 ? kSignBit : 0u));
      squares[i] = std::bit_cast<float>(random() % 8 == 0 ? 0u : bits);
      largest_mean = std::max(largest_mean, bits);
      largest_square = std::max(largest_square, std::bit_cast<std::uint32_t>(squares[i]));
    }
    const std::int64_t first = (std::int64_t{3} << 32) + 64 * round;
    encode(std::vector<std::span<const float>>{zeros, means, squares}, rounding, first,
           group.span());
    const std::uint32_t start = mixed_index(static_cast<std::uint64_t>(first), rounding.key());
    for (std::uint32_t i = 0; i < 64; ++i) {
      const std::uint32_t hash = mixed_bits(start + i * kMixIndex);
      const std::uint32_t mean =
          mean_code(std::bit_cast<std::uint32_t>(means[i]), largest_mean >> 23, hash);
      const std::uint32_t square =
          square_code(std::bit_cast<std::uint32_t>(squares[i]), largest_square, hash);
      different += mean == group.mean[i] && square == group.square[i] ? 0 : 1;
    }
  }
  CHECK(different == 0);
}
