#pragma once
// The update rules for one element, in the order of operations of core/optimizer/update_rule.h,
// which has the formulas and what each scalar means. Arithmetic is one of hls/kernels/arithmetic.h.
//
// `update` takes the bits of a gradient and of each state array's element, in the arrays' order,
// and replaces the latter. kMeanAt, kSquareAt and kSumAt say which array is a mean, a mean of
// squares or a sum of squares, which split state has codes for (stored_array.h); 0: the rule has
// none.
//
// Thread contract: immutable once made; update() on any thread.

#include <cstdint>

#include "hls/kernels/arithmetic.h"

namespace sluice::hls_kernels {

template <class Arithmetic>
class AdamW {
 public:
  static constexpr int kStateCount = 3;                 // master_weights, exp_avg, exp_avg_sq
  static constexpr int kStoredCount = kStateCount + 1;  // of split state
  static constexpr int kMeanAt = 1;
  static constexpr int kSquareAt = 2;
  static constexpr int kSumAt = 0;

  AdamW(float grad_scale, float beta1, float one_minus_beta1, float beta2, float one_minus_beta2,
        float decay, float minus_step_size, float inverse_sqrt_bias2, float eps)
      : grad_scale_(Arithmetic::from_float(grad_scale)),
        beta1_(Arithmetic::from_float(beta1)),
        one_minus_beta1_(Arithmetic::from_float(one_minus_beta1)),
        beta2_(Arithmetic::from_float(beta2)),
        one_minus_beta2_(Arithmetic::from_float(one_minus_beta2)),
        decay_(Arithmetic::from_float(decay)),
        minus_step_size_(Arithmetic::from_float(minus_step_size)),
        inverse_sqrt_bias2_(Arithmetic::from_float(inverse_sqrt_bias2)),
        eps_(Arithmetic::from_float(eps)) {}

  void update(std::uint32_t gradient, std::uint32_t (&state)[kStateCount]) const {
#pragma HLS inline
    using A = Arithmetic;
    const Value g = A::multiply(A::from_bits(gradient), grad_scale_);
    const Value m =
        A::fused_multiply_add(beta1_, A::from_bits(state[1]), A::multiply(one_minus_beta1_, g));
    const Value v = A::fused_multiply_add(beta2_, A::from_bits(state[2]),
                                          A::multiply(A::multiply(one_minus_beta2_, g), g));
    const Value denominator = A::fused_multiply_add(A::square_root(v), inverse_sqrt_bias2_, eps_);
    const Value decayed = A::multiply(A::from_bits(state[0]), decay_);
    const Value p = A::fused_multiply_add(minus_step_size_, A::divide(m, denominator), decayed);
    state[0] = A::to_bits(A::stored(p));
    state[1] = A::to_bits(A::stored(m));
    state[2] = A::to_bits(A::stored(v));
  }

 private:
  using Value = typename Arithmetic::Value;
  Value grad_scale_;
  Value beta1_, one_minus_beta1_;
  Value beta2_, one_minus_beta2_;
  Value decay_;
  Value minus_step_size_;
  Value inverse_sqrt_bias2_;
  Value eps_;
};

template <class Arithmetic>
class Sgd {
 public:
  static constexpr int kStateCount = 2;                 // master_weights, momentum_buffer
  static constexpr int kStoredCount = kStateCount + 1;  // of split state
  static constexpr int kMeanAt = 1;
  static constexpr int kSquareAt = 0;
  static constexpr int kSumAt = 0;

  Sgd(float grad_scale, float weight_decay, float momentum, float minus_lr)
      : grad_scale_(Arithmetic::from_float(grad_scale)),
        weight_decay_(Arithmetic::from_float(weight_decay)),
        momentum_(Arithmetic::from_float(momentum)),
        minus_lr_(Arithmetic::from_float(minus_lr)) {}

  void update(std::uint32_t gradient, std::uint32_t (&state)[kStateCount]) const {
#pragma HLS inline
    using A = Arithmetic;
    const Value before = A::from_bits(state[0]);
    const Value g = A::fused_multiply_add(weight_decay_, before,
                                          A::multiply(A::from_bits(gradient), grad_scale_));
    const Value m = A::fused_multiply_add(momentum_, A::from_bits(state[1]), g);
    const Value p = A::fused_multiply_add(minus_lr_, m, before);
    state[0] = A::to_bits(A::stored(p));
    state[1] = A::to_bits(A::stored(m));
  }

 private:
  using Value = typename Arithmetic::Value;
  Value grad_scale_;
  Value weight_decay_;
  Value momentum_;
  Value minus_lr_;
};

template <class Arithmetic>
class AdaGrad {
 public:
  static constexpr int kStateCount = 2;                 // master_weights, sum_sq
  static constexpr int kStoredCount = kStateCount + 1;  // of split state
  static constexpr int kMeanAt = 0;
  static constexpr int kSquareAt = 0;
  static constexpr int kSumAt = 1;

  AdaGrad(float grad_scale, float weight_decay, float minus_lr, float eps)
      : grad_scale_(Arithmetic::from_float(grad_scale)),
        weight_decay_(Arithmetic::from_float(weight_decay)),
        minus_lr_(Arithmetic::from_float(minus_lr)),
        eps_(Arithmetic::from_float(eps)) {}

  void update(std::uint32_t gradient, std::uint32_t (&state)[kStateCount]) const {
#pragma HLS inline
    using A = Arithmetic;
    const Value before = A::from_bits(state[0]);
    const Value g = A::fused_multiply_add(weight_decay_, before,
                                          A::multiply(A::from_bits(gradient), grad_scale_));
    const Value v = A::fused_multiply_add(g, g, A::from_bits(state[1]));
    const Value denominator = A::add(A::square_root(v), eps_);
    const Value p = A::fused_multiply_add(minus_lr_, A::divide(g, denominator), before);
    state[0] = A::to_bits(A::stored(p));
    state[1] = A::to_bits(A::stored(v));
  }

 private:
  using Value = typename Arithmetic::Value;
  Value grad_scale_;
  Value weight_decay_;
  Value minus_lr_;
  Value eps_;
};

}  // namespace sluice::hls_kernels
