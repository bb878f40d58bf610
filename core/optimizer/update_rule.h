#pragma once
// AdamW as D4 defines it: one order of operations, fp32, FMA where and only where it says so. The
// scalar reference, the SIMD kernel, the emulated device and (later) the HLS kernel are bit-equal
// on every input.
//
//   g  = gradient * grad_scale                                (grad_scale = unscale x clip factor)
//   m  = fma(beta1, m, one_minus_beta1 * g)
//   v  = fma(beta2, v, (one_minus_beta2 * g) * g)
//   p  = p * decay                                            (decay = 1 - lr * weight_decay)
//   p  = fma(minus_step_size, m / fma(sqrt(v), inverse_sqrt_bias2, eps), p)
//   parameter_16bit = round-to-nearest-even(p)
//
// with minus_step_size = -lr / (1 - beta1^t), inverse_sqrt_bias2 = 1 / sqrt(1 - beta2^t): torch's
// AdamW (decoupled weight decay, no amsgrad) up to rounding; facts from torch/optim/adamw and
// arXiv:1711.05101. sqrt and division are IEEE-exact, subnormals count (no flush to zero).
//
// IEEE 754 leaves open which payload and sign a NaN result has, and processors differ. So that runs
// stay bit-equal even then, m, v and p are stored through `stored_float`: every NaN becomes one
// NaN. (An overflowed step is skipped, so this is seen only when somebody looks for a fault.)
//
// Thread contract: free functions; safe on disjoint ranges. The caller's thread must be in the
// default floating-point mode (round to nearest, no flush to zero).

#include <bit>
#include <cstdint>

#include "base/float16.h"

namespace sluice::optimizer {

// What is written for a result: the value, or the one quiet NaN for every NaN.
constexpr float stored_float(float value) {
  return value == value ? value : std::bit_cast<float>(0x7fc00000u);
}

struct AdamWOptions {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.01;
};

// The constants of one step, computed in double and rounded once, by the host for every kernel and
// device. `optimizer_step` counts from 1.
struct AdamWScalars {
  float grad_scale;
  float beta1, one_minus_beta1;
  float beta2, one_minus_beta2;
  float decay;
  float minus_step_size;
  float inverse_sqrt_bias2;
  float eps;
};
AdamWScalars adamw_scalars(const AdamWOptions& options, std::int64_t optimizer_step,
                           double grad_scale);

enum class GradientKind : std::uint8_t { fp32, bf16, fp16 };
constexpr int bytes_of(GradientKind kind) { return kind == GradientKind::fp32 ? 4 : 2; }

// One subgroup's arrays, all of `element_count`. `gradient` holds elements of `gradient_kind`.
// `parameters` receives the 16-bit copy, or is null. The arrays are page-aligned in practice, but
// any alignment of whole elements works. They must not overlap; those of the state are updated in
// place.
struct AdamWArrays {
  std::int64_t element_count = 0;
  float* master_weights = nullptr;
  float* exp_avg = nullptr;
  float* exp_avg_sq = nullptr;
  const void* gradient = nullptr;
  GradientKind gradient_kind = GradientKind::fp32;
  std::uint16_t* parameters = nullptr;
  Float16Kind parameter_kind = Float16Kind::bf16;
};

// The definition, one element at a time.
void adamw_reference(const AdamWScalars& scalars, const AdamWArrays& arrays);

// The fast kernel (Highway, chosen at run time for this CPU), on the calling thread.
void adamw_update(const AdamWScalars& scalars, const AdamWArrays& arrays);

// The part [first, first + count) of the arrays, for dividing one subgroup among threads.
AdamWArrays slice(const AdamWArrays& arrays, std::int64_t first, std::int64_t count);

}  // namespace sluice::optimizer
