#pragma once
// Operands for comparing the kernels' operators with the processor's, all from a seed: values at
// the edges of binary32, and random ones drawn where rounding is hard.

#include <cstdint>
#include <random>
#include <vector>

namespace sluice::hls_kernels {

// Bits of zeros, subnormals, the ends of the normal range, infinities, NaNs, neighbours of powers
// of two, and values whose products and sums are ties; both signs.
const std::vector<std::uint32_t>& special_bits();

struct Operands {
  std::uint32_t a, b, c;
};

// Draws triples: any bits; exponents close to each other (cancellation); products about to overflow
// or underflow; `c` about as large as a * b, its negative within a few last places, or so far below
// that it only decides a tie. Significands are random, or have long runs of equal bits.
class OperandSource {
 public:
  explicit OperandSource(std::uint64_t seed) : random_(seed) {}

  std::uint32_t any_bits() { return static_cast<std::uint32_t>(random_()); }
  Operands next();

 private:
  int below(int count) { return static_cast<int>(random_() % static_cast<std::uint64_t>(count)); }
  std::uint32_t significand();
  // Subnormal below 1; stops at the largest finite exponent.
  std::uint32_t with_exponent(int exponent);
  std::uint32_t beside_product(std::uint32_t a, std::uint32_t b);

  std::mt19937_64 random_;
};

// The same number, or both some NaN.
bool is_same(std::uint32_t a, std::uint32_t b);

}  // namespace sluice::hls_kernels
