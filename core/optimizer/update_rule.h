#pragma once
// The update rules as D4 defines them: each with one order of operations, fp32, FMA where and only
// where it says so. The scalar reference, the SIMD kernel, the emulated device and the HLS kernel
// (hls/kernels/update.h) are bit-equal on every input. In all of them grad_scale = unscale x clip
// factor, and at the end
//
//   parameter_16bit = round-to-nearest-even(p)
//
// AdamW; state: p master_weights, m exp_avg, v exp_avg_sq.
//
//   g  = gradient * grad_scale
//   m  = fma(beta1, m, one_minus_beta1 * g)
//   v  = fma(beta2, v, (one_minus_beta2 * g) * g)
//   p  = p * decay                                            (decay = 1 - lr * weight_decay)
//   p  = fma(minus_step_size, m / fma(sqrt(v), inverse_sqrt_bias2, eps), p)
//
// with minus_step_size = -lr / (1 - beta1^t), inverse_sqrt_bias2 = 1 / sqrt(1 - beta2^t): torch's
// AdamW (decoupled weight decay, no amsgrad) up to rounding; facts from torch/optim/adamw and
// arXiv:1711.05101.
//
// SGD with momentum; state: p master_weights, m momentum_buffer.
//
//   g  = fma(weight_decay, p, gradient * grad_scale)
//   m  = fma(momentum, m, g)
//   p  = fma(minus_lr, m, p)                                  (minus_lr = -lr)
//
// torch's SGD (L2 weight decay, dampening 0, no Nesterov) up to rounding. torch begins with m = g,
// which is what a buffer of zeros comes to.
//
// AdaGrad; state: p master_weights, v sum_sq.
//
//   g  = fma(weight_decay, p, gradient * grad_scale)
//   v  = fma(g, g, v)
//   p  = fma(minus_lr, g / (sqrt(v) + eps), p)
//
// torch's Adagrad (L2 weight decay, lr_decay 0, the sum begins at 0) up to rounding. As in torch
// the decayed g is both squared and divided. Smart-Infinity's published kernel squares it and
// divides the undecayed one, so with weight_decay above 0 its numbers differ from these.
//
// sqrt and division are IEEE-exact, subnormals count (no flush to zero). IEEE 754 leaves open which
// payload and sign a NaN result has, and processors differ. So that runs stay bit-equal even then,
// all state is stored through `stored_float`: every NaN becomes one NaN. (An overflowed step is
// skipped, so this is seen only when somebody looks for a fault.)
//
// Thread contract: free functions; safe on disjoint ranges. The caller's thread must be in the
// default floating-point mode (round to nearest, no flush to zero).

#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <variant>

#include "base/parameter_span.h"

namespace sluice::optimizer {

// The stored form of a result: the value, or the one quiet NaN for every NaN.
constexpr float stored_float(float value) {
  return value == value ? value : std::bit_cast<float>(0x7fc00000u);
}

enum class RuleKind : std::uint8_t { adamw, sgd, adagrad };

inline constexpr int kMaxStateArrays = 3;

// The facts of a rule that the rest of a run must know.
struct RuleInfo {
  const char* name;  // of the setting, in a state's identity and of the kernel in a platform file
  // The arrays of its state in their order, all fp32: the master weights, and what begins at zero.
  std::span<const char* const> state_names;

  int state_count() const { return static_cast<int>(state_names.size()); }
};
const RuleInfo& rule_info(RuleKind rule);

// Each rule takes of these what its formula names.
struct UpdateOptions {
  RuleKind rule = RuleKind::adamw;
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double momentum = 0.9;
  double eps = 1e-8;
  double weight_decay = 0.01;
};
// torch's, except that sgd has momentum and a hundred times the lr: with gradients clipped to norm
// 1, as they are by default, 1e-3 learns next to nothing.
UpdateOptions default_options(RuleKind rule);

struct AdamWScalars {
  float grad_scale;
  float beta1, one_minus_beta1;
  float beta2, one_minus_beta2;
  float decay;
  float minus_step_size;
  float inverse_sqrt_bias2;
  float eps;
  bool operator==(const AdamWScalars&) const = default;
};

struct SgdScalars {
  float grad_scale;
  float weight_decay;
  float momentum;
  float minus_lr;
  bool operator==(const SgdScalars&) const = default;
};

struct AdaGradScalars {
  float grad_scale;
  float weight_decay;
  float minus_lr;
  float eps;
  bool operator==(const AdaGradScalars&) const = default;
};

// The constants of one step, computed in double and rounded once, by the host for every kernel and
// device; which alternative it is says which rule. `optimizer_step` counts from 1.
using UpdateScalars = std::variant<AdamWScalars, SgdScalars, AdaGradScalars>;
UpdateScalars update_scalars(const UpdateOptions& options, std::int64_t optimizer_step,
                             double grad_scale);
const RuleInfo& rule_info(const UpdateScalars& scalars);

enum class GradientKind : std::uint8_t { fp32, bf16, fp16 };
constexpr int bytes_of(GradientKind kind) { return kind == GradientKind::fp32 ? 4 : 2; }
// The gradients of one micro-batch come as its parameters are.
constexpr GradientKind gradient_kind(ParameterKind parameters) {
  switch (parameters) {
    case ParameterKind::bf16:
      return GradientKind::bf16;
    case ParameterKind::fp16:
      return GradientKind::fp16;
    case ParameterKind::fp32:
      break;
  }
  return GradientKind::fp32;
}

// One subgroup's arrays, all of `element_count`. `state` has as many as the rule; the rest are
// null. `gradient` holds elements of `gradient_kind`. `parameters` receives the 16-bit copy, or is
// null. The arrays are page-aligned in practice, but any alignment of whole elements works. They
// must not overlap; those of the state are updated in place.
struct UpdateArrays {
  std::int64_t element_count = 0;
  std::array<float*, kMaxStateArrays> state{};
  const void* gradient = nullptr;
  GradientKind gradient_kind = GradientKind::fp32;
  std::uint16_t* parameters = nullptr;
  Float16Kind parameter_kind = Float16Kind::bf16;
};

// The definition, one element at a time.
void update_reference(const UpdateScalars& scalars, const UpdateArrays& arrays);

// The fast kernel (Highway, chosen at run time for this CPU), on the calling thread.
void update(const UpdateScalars& scalars, const UpdateArrays& arrays);

// The part [first, first + count) of the arrays, for dividing one subgroup among threads.
UpdateArrays slice(const UpdateArrays& arrays, std::int64_t first, std::int64_t count);

}  // namespace sluice::optimizer
