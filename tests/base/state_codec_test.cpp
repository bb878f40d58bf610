// The soak tests: base_test '[.soak]', minutes.

#include "base/state_codec.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <random>
#include <vector>

#include "tests/base/stored_memory.h"

namespace sluice {
namespace {

constexpr ArrayCode kCodes[] = {
    ArrayCode::fp32,           ArrayCode::high,  ArrayCode::low16,   ArrayCode::low16_with_ties,
    ArrayCode::low8,           ArrayCode::mean8, ArrayCode::square8, ArrayCode::bf16,
    ArrayCode::fp32_with_ties,
};

std::uint32_t bits_of(float value) { return std::bit_cast<std::uint32_t>(value); }
float value_of(std::uint32_t bits) { return std::bit_cast<float>(bits); }

CodeRounding stochastic(std::int64_t step) { return CodeRounding::of_step(0xfeedu, step); }

// Exact ------------------------------------------------------------------------------------------

// How many are other than they were, with the ties in a sign or in bits of their own.
std::int64_t changed_by_exact(const std::vector<float>& weights, bool in_sign) {
  std::vector<float> squares(weights.size());
  for (std::size_t i = 0; i < squares.size(); ++i) squares[i] = static_cast<float>(i % 7) * 0.125F;
  StoredMemory stored(
      in_sign ? std::vector{ArrayCode::high, ArrayCode::low16, ArrayCode::fp32_with_ties}
              : std::vector{ArrayCode::high, ArrayCode::low16_with_ties, ArrayCode::fp32},
      std::ssize(weights));
  stored.encode({weights, squares}, CodeRounding::nearest());
  CHECK(stored.decoded(1) == squares);
  const std::vector<float> back = stored.decoded(0);
  std::int64_t changed = 0;
  for (std::size_t i = 0; i < weights.size(); ++i)
    changed += bits_of(back[i]) != bits_of(weights[i]);
  return changed;
}

TEST_CASE("exact keeps every bit of a master weight, ties included") {
  std::vector<float> weights;
  for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32); bits += 9973) {
    const float value = value_of(static_cast<std::uint32_t>(bits));
    if (value == value) weights.push_back(value);
  }
  for (std::uint32_t high = 0; high < 0x7f80; ++high) {
    weights.push_back(value_of(high << 16 | 0x8000u));
    weights.push_back(value_of(high << 16 | 0x80008000u));
  }
  for (const bool in_sign : {true, false}) CHECK(changed_by_exact(weights, in_sign) == 0);
}

TEST_CASE("exact keeps every float", "[.soak]") {
  for (std::uint64_t first = 0; first < (std::uint64_t{1} << 32); first += 1 << 22) {
    std::vector<float> weights;
    for (std::uint64_t bits = first; bits < first + (1 << 22); ++bits) {
      const float value = value_of(static_cast<std::uint32_t>(bits));
      if (value == value) weights.push_back(value);
    }
    for (const bool in_sign : {true, false}) CHECK(changed_by_exact(weights, in_sign) == 0);
  }
}

TEST_CASE("every NaN is stored as the one that state has") {
  const std::vector<float> nans = {value_of(0xffabcdefu), value_of(0x7f800001u)};
  for (const ArrayCode remainder :
       {ArrayCode::low16_with_ties, ArrayCode::low16, ArrayCode::low8}) {
    StoredMemory stored({ArrayCode::high, remainder, ArrayCode::fp32}, 2);
    stored.encode({nans, nans}, stochastic(1));
    for (const std::int32_t variable : {0, 1}) {
      for (const float value : stored.decoded(variable)) CHECK(bits_of(value) == 0x7fc00000u);
    }
  }
}

// Compact ----------------------------------------------------------------------------------------

enum class Spread : std::uint8_t { narrow, wide, random_bits };

// Groups whose scales are spread over 120 binades; in each of them elements over 4 or 40, or what
// any bits mean, if finite.
std::vector<float> spread_values(std::int64_t count, Spread spread, bool is_signed,
                                 std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> values(static_cast<std::size_t>(count));
  int of_group = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i % kGroupElements == 0) of_group = static_cast<int>(random() % 121) - 60;
    const int binades = spread == Spread::wide ? 40 : 4;
    const float mantissa = value_of(0x3f800000u | (random() & 0x807fffffu));
    values[i] = std::ldexp(mantissa, of_group - static_cast<int>(random() % binades));
    if (spread == Spread::random_bits) {
      const float any = value_of(static_cast<std::uint32_t>(random()));
      values[i] = std::isfinite(any) ? any : 0.0f;
    }
    if (random() % 32 == 0) values[i] = 0;
    if (!is_signed) values[i] = std::abs(values[i]);
  }
  return values;
}

constexpr Spread kSpreads[] = {Spread::narrow, Spread::wide, Spread::random_bits};
const std::vector<ArrayCode> kCompact8 = {ArrayCode::high, ArrayCode::low8, ArrayCode::mean8,
                                          ArrayCode::square8};

struct CompactValues {
  std::vector<float> weight, mean, square;

  CompactValues(std::int64_t count, Spread spread, std::uint32_t seed)
      : weight(spread_values(count, spread, true, seed)),
        mean(spread_values(count, spread, true, seed + 1)),
        square(spread_values(count, spread, false, seed + 2)) {}
  std::vector<std::vector<float>> all() const { return {weight, mean, square}; }
};

// Largest magnitude of each group, an element each.
std::vector<float> group_maxima(const std::vector<float>& values) {
  std::vector<float> maxima(values.size());
  for (std::size_t first = 0; first < values.size(); first += kGroupElements) {
    const std::size_t end = std::min(values.size(), first + kGroupElements);
    float largest = 0;
    for (std::size_t i = first; i < end; ++i) largest = std::max(largest, std::abs(values[i]));
    std::fill(maxima.begin() + static_cast<std::ptrdiff_t>(first),
              maxima.begin() + static_cast<std::ptrdiff_t>(end), largest);
  }
  return maxima;
}

// 2^(E-7) of a group's exponent E, at least the smallest normal number.
double mean_bias_of(float largest) {
  const std::uint32_t exponent = bits_of(largest) >> 23;
  return value_of((std::max<std::uint32_t>(exponent, 8) - 7) << 23);
}

// How far numbers are from what they were, in steps of their codes: at most half of one if rounded
// to the nearest, less than one if by random bits.
struct Worst {
  double low8 = 0;     // of 256 ulp
  double mean8 = 0;    // of a 16th of |m| + 2^(E-7), or of the room above the highest code
  double square8 = 0;  // of a 16th, in the 16 binades below the maximum
  int lost_signs = 0;
};

void worsen(double& worst, double error, double step) {
  if (error > 0) worst = std::max(worst, error / step);
}

Worst worst_of(StoredMemory& stored, const CompactValues& values) {
  Worst worst;
  const std::vector<float> weight = stored.decoded(0);
  const std::vector<float> mean = stored.decoded(1);
  const std::vector<float> square = stored.decoded(2);
  const std::vector<float> largest_mean = group_maxima(values.mean);
  const std::vector<float> largest_square = group_maxima(values.square);
  for (std::size_t i = 0; i < weight.size(); ++i) {
    // In bits, so that the step across a binade counts as what it is.
    const std::int64_t apart = std::int64_t{bits_of(weight[i])} - bits_of(values.weight[i]);
    worsen(worst.low8, static_cast<double>(std::abs(apart)), 256);
    const double bias = mean_bias_of(largest_mean[i]);
    const double highest = bias * 248 - bias;  // what code 127 decodes to: 1.9375 x 2^E - 2^(E-7)
    const double clamped = std::min<double>(std::abs(values.mean[i]), highest);
    worsen(worst.mean8, std::abs(std::abs(mean[i]) - clamped), (clamped + bias) / 16);
    worst.lost_signs += std::signbit(mean[i]) != std::signbit(values.mean[i]);
    const std::uint32_t floor = bits_of(largest_square[i]) - (254u << 19);
    const bool is_above = bits_of(largest_square[i]) > (254u << 19) &&
                          bits_of(values.square[i]) >= std::max(floor, 0x00800000u);
    if (is_above)
      worsen(worst.square8, std::abs(double{square[i]} - values.square[i]),
             values.square[i] / 16.0);
  }
  return worst;
}

void check_bounds(std::int64_t count, Spread spread, std::uint32_t seed) {
  const CompactValues values(count, spread, seed);
  for (const bool to_nearest : {true, false}) {
    StoredMemory stored(kCompact8, count);
    stored.encode(values.all(), to_nearest ? CodeRounding::nearest() : stochastic(seed), 64 * seed);
    const Worst worst = worst_of(stored, values);
    // fp32's own rounding in the addition and subtraction of a mean's bias.
    const double rounding = 1e-5;
    const double bound = to_nearest ? 0.5 : 1.0;
    CAPTURE(static_cast<int>(spread), seed, to_nearest);
    CHECK(worst.low8 <= bound);
    CHECK(worst.mean8 <= bound + rounding);
    CHECK(worst.square8 <= bound);
    CHECK(worst.lost_signs == 0);
  }
}

TEST_CASE("compact numbers are within their bounds") {
  for (const Spread spread : kSpreads) check_bounds(200'000, spread, 3);
}

TEST_CASE("compact numbers are within their bounds on a hundred million elements", "[.soak]") {
  for (std::uint32_t round = 0; round < 32; ++round) {
    for (const Spread spread : kSpreads) check_bounds((1 << 20) + 13, spread, 100 + 3 * round);
  }
}

TEST_CASE("a sum of squares that is not 0 has no code 0, and 0 has it") {
  for (const Spread spread : kSpreads) {
    const std::vector<float> squares = spread_values(100'000, spread, false, 17);
    for (const CodeRounding& rounding : {CodeRounding::nearest(), stochastic(2)}) {
      StoredMemory stored({ArrayCode::square8}, std::ssize(squares));
      stored.encode({squares}, rounding);
      int wrong = 0;
      for (std::size_t i = 0; i < squares.size(); ++i) {
        const GroupPlace place = place_of_group(
            ArrayCode::square8, static_cast<std::int64_t>(i) / kGroupElements, std::ssize(squares));
        const std::size_t at = static_cast<std::size_t>(place.codes_bytes) + i % kGroupElements;
        wrong += (stored.bytes[0][at] == std::byte{0}) != (squares[i] == 0);
      }
      CHECK(wrong == 0);
    }
  }
}

// Where no number falls below the smallest code.
TEST_CASE("decoded squares keep their codes whatever they are rounded by") {
  for (const Spread spread : {Spread::narrow, Spread::wide}) {
    const CompactValues values(100'000, spread, 23);
    StoredMemory first({ArrayCode::square8}, 100'000);
    first.encode({values.square}, stochastic(1));
    const std::vector<float> square = first.decoded(0);
    for (std::int64_t step = 2; step < 6; ++step) {
      StoredMemory again({ArrayCode::square8}, 100'000);
      again.encode({square}, stochastic(step));
      CHECK(again.bytes == first.bytes);
    }
  }
}

// A group's largest mean may decode to one of the binade below.
TEST_CASE("numbers that were decoded are encoded to the nearest without loss") {
  for (const Spread spread : kSpreads) {
    const CompactValues values(100'000, spread, 29);
    for (const CodeRounding& rounding : {CodeRounding::nearest(), stochastic(1)}) {
      StoredMemory first(kCompact8, 100'000);
      first.encode(values.all(), rounding);
      const std::vector<std::vector<float>> decoded = {first.decoded(0), first.decoded(1),
                                                       first.decoded(2)};
      StoredMemory again(kCompact8, 100'000);
      again.encode(decoded, CodeRounding::nearest());
      for (const std::int32_t variable : {0, 1, 2})
        CHECK(again.decoded(variable) == decoded[static_cast<std::size_t>(variable)]);
    }
  }
}

TEST_CASE("random bits round to either side, as often as is fair") {
  const std::int64_t count = 100'000;
  // Each group's first element keeps the scale; the others lie a quarter of a step below a code.
  std::vector<float> squares(static_cast<std::size_t>(count), value_of((127u << 23) - (1u << 17)));
  for (std::size_t i = 0; i < squares.size(); i += kGroupElements) squares[i] = 1;
  StoredMemory stored({ArrayCode::square8}, count);
  for (std::int64_t step = 1; step < 4; ++step) {
    stored.encode({squares}, stochastic(step));
    const std::vector<float> back = stored.decoded(0);
    const auto down = static_cast<double>(std::count_if(
        back.begin(), back.end(), [&squares](float value) { return value < squares[1]; }));
    CHECK(down / static_cast<double>(count) == Approx(0.25 * 63 / 64).margin(0.01));
  }
}

// Places -----------------------------------------------------------------------------------------

TEST_CASE("groups and their scales fill an array, without a gap or an overlap") {
  for (const ArrayCode code : kCodes) {
    const ArrayWidth width = width_of(code);
    for (const std::int64_t count : {1, 64, 65, 4095, 4096, 4097, 8192, 12345}) {
      std::vector<int> used(static_cast<std::size_t>(array_bytes(code, count)));
      const auto use = [&used](std::int64_t begin, std::int64_t bytes) {
        for (std::int64_t at = begin; at < begin + bytes; ++at)
          ++used.at(static_cast<std::size_t>(at));
      };
      for (std::int64_t group = 0; group * kGroupElements < count; ++group) {
        const GroupPlace place = place_of_group(code, group, count);
        const std::int64_t elements =
            width.group_bytes > 0 ? kGroupElements
                                  : std::min(kGroupElements, count - group * kGroupElements);
        use(place.codes_bytes, elements * width.element_bytes);
        if (width.group_bytes > 0) use(place.scale_bytes, width.group_bytes);
      }
      CAPTURE(static_cast<int>(code), count);
      CHECK(std::count(used.begin(), used.end(), 1) == std::ssize(used));
    }
  }
}

TEST_CASE("a block's bytes are its own, wherever the array ends") {
  for (const ArrayCode code : kCodes) {
    for (const std::int64_t count : {2 * kBlockElements + 1, 3 * kBlockElements}) {
      const GroupPlace place = place_of_group(code, 2 * kBlockGroups, count);
      CHECK(place.codes_bytes == array_bytes(code, 2 * kBlockElements));
    }
  }
}

// The hash ---------------------------------------------------------------------------------------

TEST_CASE("random bits are even, and have nothing to do with those beside them") {
  constexpr std::int64_t kCount = 1 << 18;
  const CodeRounding one = stochastic(1);
  const CodeRounding next = stochastic(2);
  std::vector<double> bins(256);
  double sum = 0, with_neighbour = 0, with_next = 0;
  const auto centred = [](std::uint32_t bits) { return (bits & 0x7ffffu) / 524288.0 - 0.5; };
  for (std::int64_t i = 0; i < kCount; ++i) {
    const double here = centred(one.bits(i));
    ++bins[one.bits(i) >> 24];
    sum += here;
    with_neighbour += here * centred(one.bits(i + 1));
    with_next += here * centred(next.bits(i));
  }
  // Five standard deviations of even and independent numbers.
  const double root = std::sqrt(double{kCount});
  CHECK(std::abs(sum) < 5 * root * std::sqrt(1.0 / 12));
  CHECK(std::abs(with_neighbour) < 5 * root / 12);
  CHECK(std::abs(with_next) < 5 * root / 12);
  for (const double bin : bins) CHECK(std::abs(bin - kCount / 256) < 5 * std::sqrt(kCount / 256.0));
}

TEST_CASE("random bits are those of the seed, the step and both halves of the index") {
  const CodeRounding rounding = CodeRounding::of_step(1, 1);
  CHECK(rounding == CodeRounding::of_step(1, 1));
  CHECK_FALSE(rounding == CodeRounding::of_step(1, 2));
  CHECK_FALSE(rounding == CodeRounding::of_step(2, 1));
  CHECK_FALSE(rounding == CodeRounding::of_step(1 + (std::uint64_t{1} << 32), 1));
  CHECK(rounding.bits(5) != rounding.bits(5 + (std::int64_t{1} << 32)));
}

}  // namespace
}  // namespace sluice
