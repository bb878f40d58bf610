#pragma once
// Inputs for comparing a kernel with its reference: numbers as training has them, values at the
// edges of fp32, and arbitrary bits. All from a seed.

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "core/optimizer/update_rule.h"

namespace sluice::optimizer {

inline constexpr RuleKind kRules[] = {RuleKind::adamw, RuleKind::sgd, RuleKind::adagrad};
inline constexpr GradientKind kRuleGradientKinds[] = {GradientKind::fp32, GradientKind::bf16,
                                                      GradientKind::fp16};
inline std::size_t state_count(RuleKind rule) {
  return static_cast<std::size_t>(rule_info(rule).state_count());
}

// Zeros, subnormals, the ends of the normal range, infinities, quiet and signalling NaNs, and a few
// ordinary numbers; both signs.
const std::vector<float>& special_floats();

std::vector<float> random_bit_floats(std::int64_t count, std::uint32_t seed);
std::vector<float> normal_floats(std::int64_t count, float deviation, std::uint32_t seed);
std::vector<std::uint16_t> random_halves(std::int64_t count, std::uint32_t seed);

// The bits, so that NaNs and signed zeros are compared too.
std::vector<std::uint32_t> bits_of(const std::vector<float>& values);

// Runs `body` with the kernels held to each instruction set that this CPU has, then frees them.
void for_each_simd_target(const std::function<void(const std::string& name)>& body);

}  // namespace sluice::optimizer
