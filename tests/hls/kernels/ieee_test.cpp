// The integer operators against the processor's. The hidden test [.soak] does the same with a
// hundred million triples: hls_kernels_test '[.soak]'.

#include "hls/kernels/ieee.h"

#include <catch2/catch.hpp>
#include <string>

#include "hls/kernels/arithmetic.h"
#include "tests/hls/kernels/operands.h"

namespace sluice::hls_kernels {
namespace {

struct Operator {
  const char* name;
  int operand_count;
  std::uint32_t (*integer)(const Operands& of);
  std::uint32_t (*native)(const Operands& of);
};

template <class Arithmetic>
struct Applied {
  using A = Arithmetic;
  static std::uint32_t multiply(const Operands& of) {
    return A::to_bits(A::multiply(A::from_bits(of.a), A::from_bits(of.b)));
  }
  static std::uint32_t add(const Operands& of) {
    return A::to_bits(A::add(A::from_bits(of.a), A::from_bits(of.b)));
  }
  static std::uint32_t divide(const Operands& of) {
    return A::to_bits(A::divide(A::from_bits(of.a), A::from_bits(of.b)));
  }
  static std::uint32_t square_root(const Operands& of) {
    return A::to_bits(A::square_root(A::from_bits(of.a)));
  }
  static std::uint32_t fused_multiply_add(const Operands& of) {
    return A::to_bits(
        A::fused_multiply_add(A::from_bits(of.a), A::from_bits(of.b), A::from_bits(of.c)));
  }
};
using Integer = Applied<IntegerArithmetic>;
using Native = Applied<NativeArithmetic>;

constexpr Operator kOperators[] = {
    {"square_root", 1, Integer::square_root, Native::square_root},
    {"multiply", 2, Integer::multiply, Native::multiply},
    {"add", 2, Integer::add, Native::add},
    {"divide", 2, Integer::divide, Native::divide},
    {"fused_multiply_add", 3, Integer::fused_multiply_add, Native::fused_multiply_add},
};

// Counts what differs, and keeps the first of it.
class Comparison {
 public:
  explicit Comparison(const Operator& compared) : operator_(compared) {}
  ~Comparison() {
    INFO(operator_.name << first_);
    CHECK(wrong_count_ == 0);
  }
  void compare(const Operands& of) {
    const std::uint32_t integer = operator_.integer(of);
    const std::uint32_t native = operator_.native(of);
    if (is_same(integer, native)) return;
    if (wrong_count_++ > 0) return;
    char text[100];
    std::snprintf(text, sizeof(text), "(%08x, %08x, %08x) = %08x, the processor's is %08x", of.a,
                  of.b, of.c, integer, native);
    first_ = text;
  }

 private:
  const Operator& operator_;
  std::int64_t wrong_count_ = 0;
  std::string first_;
};

void compare_random(std::int64_t count, std::uint64_t seed) {
  for (const Operator& compared : kOperators) {
    Comparison comparison(compared);
    OperandSource source(seed);
    for (std::int64_t i = 0; i < count; ++i) comparison.compare(source.next());
  }
}

TEST_CASE("operators on every combination of special values") {
  for (const Operator& compared : kOperators) {
    Comparison comparison(compared);
    for (const std::uint32_t a : special_bits()) {
      for (const std::uint32_t b : special_bits()) {
        if (compared.operand_count < 3) comparison.compare({a, b, 0});
        for (const std::uint32_t c : special_bits()) {
          if (compared.operand_count == 3) comparison.compare({a, b, c});
        }
      }
    }
  }
}

TEST_CASE("operators on random operands") { compare_random(3'000'000, 1); }

TEST_CASE("square_root of values all over the range") {
  Comparison comparison(kOperators[0]);
  for (std::uint64_t bits = 0; bits <= 0xffffffffu; bits += 1'021)
    comparison.compare({static_cast<std::uint32_t>(bits), 0, 0});
  // Near the squares of significands of 12 digits a root is exact, or all but.
  for (std::uint32_t root = 0x800; root < 0x1000; ++root) {
    const auto square = std::bit_cast<std::uint32_t>(static_cast<float>(root * root));
    for (std::uint32_t bits = square - 2; bits <= square + 2; ++bits)
      comparison.compare({bits, 0, 0});
  }
}

TEST_CASE("fused_multiply_add of what only one rounding gets right") {
  Comparison comparison(kOperators[4]);
  const std::uint32_t one = 0x3f800000u;
  // (1 + x)(1 - x) - 1 for every last place x, and what cancels all but the last digit.
  for (std::uint32_t x = 0; x < 24; ++x) {
    const std::uint32_t above = one + (1u << x);
    for (std::uint32_t y = 0; y < 24; ++y) {
      comparison.compare({above, one - (1u << y), one | kSignBit});
      comparison.compare({above, one + (1u << y), one | kSignBit});
      comparison.compare({above, above, (one + (2u << y)) | kSignBit});
    }
  }
  // A product in the middle between two floats, pushed off it by an addend at any distance below.
  for (std::uint32_t exponent = 0; exponent < 254; ++exponent) {
    for (const std::uint32_t sign : {0u, kSignBit}) {
      comparison.compare({one + 1, 0x3fc00000u, exponent << 23 | sign});
      comparison.compare({one + 1, 0x3fc00000u, exponent << 23 | sign | 1u});
      comparison.compare({one + 0x800, one + 0x800, exponent << 23 | sign});
      comparison.compare({0x00800001u, 0x3f000000u, exponent << 23 | sign});
      comparison.compare({0x00000003u, 0x3f000000u, exponent << 23 | sign});
    }
  }
}

TEST_CASE("a NaN result is the one that is stored") {
  const std::uint32_t payload = 0xff812345u;
  CHECK(multiply(payload, 0x3f800000u) == kNan);
  CHECK(multiply(0, kInfinity) == kNan);
  CHECK(add(kInfinity, kInfinity | kSignBit) == kNan);
  CHECK(divide(0, kSignBit) == kNan);
  CHECK(square_root(0xbf800000u) == kNan);
  CHECK(fused_multiply_add(0x3f800000u, 0x3f800000u, payload) == kNan);
  CHECK(IntegerArithmetic::stored(payload) == kNan);
  CHECK(NativeArithmetic::to_bits(NativeArithmetic::stored(NativeArithmetic::from_bits(payload))) ==
        kNan);
}

TEST_CASE("operators on a hundred million random operands", "[.soak]") {
  compare_random(100'000'000, 2);
}

}  // namespace
}  // namespace sluice::hls_kernels
