#include "tests/hls/kernels/operands.h"

#include <algorithm>
#include <bit>

namespace sluice::hls_kernels {

const std::vector<std::uint32_t>& special_bits() {
  static const std::vector<std::uint32_t> values = [] {
    std::vector<std::uint32_t> both_signs;
    for (const std::uint32_t bits :
         {0x00000000u, 0x00000001u, 0x00000002u, 0x00000003u, 0x00400000u, 0x00555555u,
          0x007ffffeu, 0x007fffffu, 0x00800000u, 0x00800001u, 0x00ffffffu, 0x01000000u,
          0x0c800000u, 0x1e3ce508u, 0x1fffffffu, 0x20000000u, 0x20000001u, 0x33000000u,
          0x33800000u, 0x34000000u, 0x3effffffu, 0x3f000000u, 0x3f000001u, 0x3f2aaaabu,
          0x3f7fffffu, 0x3f800000u, 0x3f800001u, 0x3fb504f3u, 0x3fffffffu, 0x40000000u,
          0x40490fdbu, 0x4b7fffffu, 0x4b800000u, 0x5f800000u, 0x7effffffu, 0x7f000000u,
          0x7f7ffffeu, 0x7f7fffffu, 0x7f800000u, 0x7f800001u, 0x7fc00000u, 0x7fffffffu}) {
      both_signs.push_back(bits);
      both_signs.push_back(bits | 0x80000000u);
    }
    return both_signs;
  }();
  return values;
}

bool is_same(std::uint32_t a, std::uint32_t b) {
  const auto is_nan = [](std::uint32_t bits) { return (bits & 0x7fffffffu) > 0x7f800000u; };
  return a == b || (is_nan(a) && is_nan(b));
}

std::uint32_t OperandSource::significand() {
  const std::uint32_t bits = any_bits() & 0x7fffffu;
  switch (below(4)) {
    case 0:  // ones, then zeros, and one bit anywhere
      return ((0x7fffffu << below(24)) & 0x7fffffu) ^ (1u << below(23));
    case 1:  // zeros, then ones
      return (0x7fffffu >> below(24)) ^ static_cast<std::uint32_t>(below(2));
    case 2:  // half the digits: exact products
      return bits & 0x7ff000u;
    default:
      return bits;
  }
}

std::uint32_t OperandSource::with_exponent(int exponent) {
  const std::uint32_t sign = any_bits() & 0x80000000u;
  if (exponent < 1) {
    const int cut = std::min(1 - exponent, 23);
    return sign | (significand() | 0x800000u) >> cut;
  }
  return sign | static_cast<std::uint32_t>(std::min(exponent, 254)) << 23 | significand();
}

std::uint32_t OperandSource::beside_product(std::uint32_t a, std::uint32_t b) {
  const float product = std::bit_cast<float>(a) * std::bit_cast<float>(b);
  return std::bit_cast<std::uint32_t>(-product) + static_cast<std::uint32_t>(below(5) - 2);
}

Operands OperandSource::next() {
  const int exponent = below(255);
  Operands operands = {};
  operands.a = with_exponent(exponent);
  switch (below(6)) {
    case 0:
      return {any_bits(), any_bits(), any_bits()};
    case 1:  // about as large as each other
      operands.b = with_exponent(exponent + below(5) - 2);
      break;
    case 2:  // as far apart as a significand is long
      operands.b = with_exponent(exponent + below(61) - 30);
      break;
    case 3:  // a * b about to underflow; a / b about to overflow
      operands.b = with_exponent(126 - exponent + below(52) - 26);
      break;
    case 4:  // a * b about to overflow; a / b about to underflow
      operands.b = with_exponent(381 - exponent + below(8) - 4);
      break;
    default:
      operands.b = with_exponent(below(255));
  }
  const int product = exponent + static_cast<int>(operands.b >> 23 & 0xffu) - 127;
  switch (below(4)) {
    case 0:
      operands.c = beside_product(operands.a, operands.b);
      break;
    case 1:
      operands.c = with_exponent(product + below(7) - 3);
      break;
    case 2:
      operands.c = with_exponent(product + below(121) - 60);
      break;
    default:
      operands.c = with_exponent(below(255));
  }
  return operands;
}

}  // namespace sluice::hls_kernels
