#include "hls/kernels/gradient_norm.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/optimizer/gradient_stats.h"
#include "hls/kernels/kernels.h"
#include "hls/sim/processes.h"
#include "tests/hls/kernels/operands.h"

namespace sluice::hls_kernels {
namespace {

using optimizer::gradient_stats_reference;
using optimizer::GradientKind;
using optimizer::GradientStats;

constexpr std::int64_t kBlock = optimizer::kNormBlockElements;
static_assert(kBlock == kNormBlockElements);

constexpr GradientFormat kFormats[] = {kGradientFp32, kGradientBf16, kGradientFp16};

GradientKind kind_of(GradientFormat format) {
  if (format == kGradientFp32) return GradientKind::fp32;
  return format == kGradientBf16 ? GradientKind::bf16 : GradientKind::fp16;
}

// A buffer of whole words. What follows the last element is NaN.
class Gradient {
 public:
  Gradient(const std::vector<std::uint32_t>& bits, GradientFormat format) : format_(format) {
    const std::size_t size = format == kGradientFp32 ? 4 : 2;
    words_.resize((bits.size() * size + kWordBytes - 1) / kWordBytes, Word(0xffffffffu));
    auto* memory = reinterpret_cast<unsigned char*>(words_.data());
    for (const std::uint32_t element : bits) {
      const std::uint32_t half =
          format == kGradientBf16 ? bf16_from_fp32(element) : fp16_from_fp32(element);
      const std::uint32_t stored = format == kGradientFp32 ? element : half;
      std::memcpy(memory, &stored, size);
      memory += size;
    }
  }
  GradientStats reference(std::int64_t count) const {
    return gradient_stats_reference(words_.data(), kind_of(format_), count);
  }
  template <class Sum>
  GradientStats measured(std::int64_t count) const {
    Word result = Word(0xffffffffu);
    norm_of<Sum>(words_.data(), &result, static_cast<std::uint64_t>(count), format_);
    return {.sum_of_squares = std::bit_cast<double>(lane64(result, 1)), .finite = result[0] == 1};
  }
  const Word* words() const { return words_.data(); }

 private:
  GradientFormat format_;
  std::vector<Word> words_;
};

bool is_equal(const GradientStats& a, const GradientStats& b) {
  const auto bits = [](double value) { return std::bit_cast<std::uint64_t>(value); };
  return bits(a.sum_of_squares) == bits(b.sum_of_squares) && a.finite == b.finite;
}

bool is_as_reference(const Gradient& gradient, std::int64_t count) {
  const GradientStats reference = gradient.reference(count);
  return is_equal(gradient.measured<IntegerSum>(count), reference) &&
         is_equal(gradient.measured<NativeSum>(count), reference);
}

std::vector<std::uint32_t> normal_bits(std::int64_t count, float deviation) {
  std::mt19937_64 random(5);
  std::normal_distribution<float> normal(0, deviation);
  std::vector<std::uint32_t> bits;
  for (std::int64_t i = 0; i < count; ++i)
    bits.push_back(std::bit_cast<std::uint32_t>(normal(random)));
  return bits;
}

// Any bits but infinities and NaNs: exponents all over the range.
std::vector<std::uint32_t> finite_bits(std::int64_t count) {
  OperandSource source(6);
  std::vector<std::uint32_t> bits;
  while (static_cast<std::int64_t>(bits.size()) < count) {
    const std::uint32_t drawn = source.any_bits();
    if ((drawn & kInfinity) != kInfinity) bits.push_back(drawn);
  }
  return bits;
}

void check_lengths(const std::vector<std::uint32_t>& bits,
                   const std::vector<std::int64_t>& counts) {
  for (const GradientFormat format : kFormats) {
    const Gradient gradient(bits, format);
    std::vector<std::int64_t> wrong;
    std::ranges::copy_if(counts, std::back_inserter(wrong),
                         [&](std::int64_t count) { return !is_as_reference(gradient, count); });
    CAPTURE(format);
    CHECK(wrong.empty());
  }
}

void compare_sums(std::int64_t count, std::uint64_t seed) {
  OperandSource source(seed);
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    // Sums of any two numbers, and of two squares; the larger of both is sometimes far larger.
    const Operands drawn = source.next();
    const std::uint64_t low = std::uint64_t{source.any_bits()} << 20 | (drawn.a & 0xfffffu);
    const std::uint64_t exponent = 724 + drawn.b % 590;
    const std::uint64_t a = exponent << 52 | low;
    const std::uint64_t b = (exponent + drawn.c % 58) << 52 | (i % 3 == 0 ? 0 : ~low << 12 >> 12);
    wrong += IntegerSum::add(a, b) !=
             NativeSum::to_bits(NativeSum::from_bits(a) + NativeSum::from_bits(b));
    if ((drawn.a & kInfinity) == kInfinity) continue;
    const std::uint64_t square = IntegerSum::square(drawn.a);
    const double value = std::bit_cast<float>(drawn.a);
    wrong += square != NativeSum::to_bits(NativeSum::square(drawn.a));
    wrong += IntegerSum::add(square, a) !=
             std::bit_cast<std::uint64_t>(std::fma(value, value, std::bit_cast<double>(a)));
  }
  CHECK(wrong == 0);
}

TEST_CASE("the adder of squares equals the processor's") { compare_sums(2'000'000, 7); }

TEST_CASE("the adder of squares on a hundred million random pairs", "[.soak]") {
  compare_sums(100'000'000, 8);
}

TEST_CASE("the norm equals the reference at every short length") {
  std::vector<std::int64_t> counts;
  for (std::int64_t count = 0; count <= 200; ++count) counts.push_back(count);
  for (const std::int64_t count : {1'008, 1'023, 1'024, 1'025, 1'040, 2'048, 2'049})
    counts.push_back(count);
  check_lengths(normal_bits(2'049, 1e-2f), counts);
  check_lengths(finite_bits(2'049), counts);
  check_lengths(special_bits(), {1, 40, 84});
}

TEST_CASE("the norm equals the reference around the borders of blocks and groups") {
  std::vector<std::int64_t> counts;
  for (const std::int64_t border :
       {kBlock, 2 * kBlock, 15 * kBlock, 16 * kBlock, 17 * kBlock, 32 * kBlock}) {
    for (const std::int64_t beside : {-1'025, -17, -1, 0, 1, 16, 900})
      counts.push_back(border + beside);
  }
  check_lengths(normal_bits(32 * kBlock + 900, 1e-2f), counts);
}

TEST_CASE("the norm of gradients at the ends of the range") {
  const std::int64_t count = 17 * kBlock + 33;
  check_lengths(finite_bits(count), {count});
  // Subnormal, some of them, in fp32 and in fp16.
  check_lengths(normal_bits(count, 1e-38f), {count});
  check_lengths(normal_bits(count, 1e-6f), {count});
  check_lengths(std::vector<std::uint32_t>(static_cast<std::size_t>(count), 0x80000000u), {count});
  check_lengths(std::vector<std::uint32_t>(static_cast<std::size_t>(count), 0x7f7f0000u), {count});
}

TEST_CASE("an element that is not finite is told, wherever it is, and only inside") {
  const std::int64_t count = 2 * kBlock + 40;
  for (const std::int64_t place : {std::int64_t{0}, std::int64_t{17}, kBlock, count - 1}) {
    for (const std::uint32_t bits : {0x7f800000u, 0xff800000u, 0x7fc00000u, 0xffc12345u}) {
      std::vector<std::uint32_t> elements = normal_bits(count, 1e-2f);
      elements[static_cast<std::size_t>(place)] = bits;
      elements[3] = bits == 0x7fc00000u ? 0x7f800000u : elements[3];  // both kinds
      check_lengths(elements, {count, count - 1});
    }
  }
}

TEST_CASE("the norm as a dataflow region of threads") {
  const hls_sim::ThreadsScope threads;
  check_lengths(normal_bits(3 * kBlock + 33, 1e-2f), {1, 33, kBlock, 3 * kBlock + 33});
}

// The largest count is a bound of the cycles. Sixteen whole blocks take a cycle a row; fewer take
// as many cycles as the longest of them would sixteen times.
TEST_CASE("the norm takes a row a beat, and reads no word twice") {
  for (const auto& [count, rows] : {std::pair{std::int64_t{0}, 0u},
                                    {1, kChunkRows},
                                    {1'025, 2 * kChunkRows},
                                    {16 * kBlock, 16 * kNormBlockRows},
                                    {16 * kBlock + 1, 16 * kNormBlockRows + kChunkRows},
                                    {17 * kBlock, 32 * kNormBlockRows}}) {
    const Gradient gradient(std::vector<std::uint32_t>(static_cast<std::size_t>(count)),
                            kGradientBf16);
    const hls_sim::BeatCounts beats;
    gradient.measured<NativeSum>(count);
    CAPTURE(count);
    CHECK(beats.of("words") == static_cast<std::uint64_t>((count + 31) / 32));
    CHECK(beats.of("rows") == rows);
    CHECK(beats.of("interleaved") == rows);
  }
}

TEST_CASE("the norm's compute unit, and arguments that no kernel knows") {
  const std::vector<std::uint32_t> bits = normal_bits(1'000, 1);
  const Gradient gradient(bits, kGradientFp32);
  Word result;
  gradient_norm(gradient.words(), &result, bits.size(), kGradientFp32);
  CHECK(result[0] == 1);
  CHECK(std::bit_cast<double>(lane64(result, 1)) == gradient.reference(1'000).sum_of_squares);
  gradient_norm(gradient.words(), &result, bits.size(), kGradientSparse);
  CHECK(result[0] == 0);
  gradient_norm(gradient.words(), &result, kMaxElements + 1, kGradientFp32);
  CHECK(result[0] == 0);
}

}  // namespace
}  // namespace sluice::hls_kernels
