#pragma once
// The arithmetic of a rule, as a template argument. Both give the same bits:
//
//   IntegerArithmetic   the operators of ieee.h; what is synthesised
//   NativeArithmetic    the processor's own; only under g++, for speed
//
// Thread contract: free functions of values. NativeArithmetic needs the default floating-point
// mode.

#include <cstdint>

#include "hls/kernels/ieee.h"

#ifndef __SYNTHESIS__
#include <bit>
#include <cmath>
#endif

namespace sluice::hls_kernels {

struct IntegerArithmetic {
  using Value = std::uint32_t;
  static Value from_bits(std::uint32_t bits) { return bits; }
  static std::uint32_t to_bits(Value value) { return value; }
  // For a kernel's scalar. By a union, which v++ and g++ both define, and v++ makes wires of.
  static Value from_float(float value) {
#pragma HLS inline
    union {
      float value;
      std::uint32_t bits;
    } scalar;
    scalar.value = value;
    return scalar.bits;
  }
  static Value multiply(Value a, Value b) { return hls_kernels::multiply(a, b); }
  static Value fused_multiply_add(Value a, Value b, Value c) {
    return hls_kernels::fused_multiply_add(a, b, c);
  }
  static Value add(Value a, Value b) { return hls_kernels::add(a, b); }
  static Value divide(Value a, Value b) { return hls_kernels::divide(a, b); }
  static Value square_root(Value a) { return hls_kernels::square_root(a); }
  // As stored_float of update_rule.h: one NaN for all.
  static Value stored(Value a) { return is_nan(a) ? kNan : a; }
};

#ifndef __SYNTHESIS__

struct NativeArithmetic {
  using Value = float;
  static Value from_bits(std::uint32_t bits) { return std::bit_cast<float>(bits); }
  static std::uint32_t to_bits(Value value) { return std::bit_cast<std::uint32_t>(value); }
  static Value from_float(float value) { return value; }
  static Value multiply(Value a, Value b) { return a * b; }
  static Value fused_multiply_add(Value a, Value b, Value c) { return std::fma(a, b, c); }
  static Value add(Value a, Value b) { return a + b; }
  static Value divide(Value a, Value b) { return a / b; }
  static Value square_root(Value a) { return std::sqrt(a); }
  static Value stored(Value a) { return a == a ? a : std::bit_cast<float>(kNan); }
};

#endif

#if defined(__SYNTHESIS__) || defined(HLS_INTEGER_ARITHMETIC)
using KernelArithmetic = IntegerArithmetic;
#else
using KernelArithmetic = NativeArithmetic;
#endif

}  // namespace sluice::hls_kernels
