#include <catch2/catch.hpp>
#include <cmath>
#include <thread>

#include "core/optimizer/update_rule.h"
#include "tests/core/optimizer/inputs.h"

namespace sluice::optimizer {
namespace {

constexpr std::uint16_t kUntouched = 0x1234;

// One subgroup with room for guard elements after its end.
struct Subgroup {
  std::vector<float> master_weights, exp_avg, exp_avg_sq, gradient;
  std::vector<std::uint16_t> gradient_16bit;
  std::vector<std::uint16_t> parameters;

  AdamWArrays arrays(GradientKind gradient_kind, Float16Kind parameter_kind) {
    const bool wide = gradient_kind == GradientKind::fp32;
    return {.element_count = static_cast<std::int64_t>(master_weights.size()),
            .master_weights = master_weights.data(),
            .exp_avg = exp_avg.data(),
            .exp_avg_sq = exp_avg_sq.data(),
            .gradient = wide ? static_cast<const void*>(gradient.data()) : gradient_16bit.data(),
            .gradient_kind = gradient_kind,
            .parameters = parameters.data(),
            .parameter_kind = parameter_kind};
  }

  bool same_bits(const Subgroup& other) const {
    return bits_of(master_weights) == bits_of(other.master_weights) &&
           bits_of(exp_avg) == bits_of(other.exp_avg) &&
           bits_of(exp_avg_sq) == bits_of(other.exp_avg_sq) && parameters == other.parameters;
  }
};

Subgroup trained_subgroup(std::int64_t count, std::uint32_t seed) {
  Subgroup group{.master_weights = normal_floats(count, 0.02f, seed),
                 .exp_avg = normal_floats(count, 1e-3f, seed + 1),
                 .exp_avg_sq = normal_floats(count, 1e-6f, seed + 2),
                 .gradient = normal_floats(count, 1e-2f, seed + 3),
                 .gradient_16bit = random_halves(count, seed + 4),
                 .parameters = std::vector<std::uint16_t>(static_cast<std::size_t>(count))};
  for (float& square : group.exp_avg_sq) square = std::abs(square);
  return group;
}

Subgroup random_bit_subgroup(std::int64_t count, std::uint32_t seed) {
  return {.master_weights = random_bit_floats(count, seed),
          .exp_avg = random_bit_floats(count, seed + 1),
          .exp_avg_sq = random_bit_floats(count, seed + 2),
          .gradient = random_bit_floats(count, seed + 3),
          .gradient_16bit = random_halves(count, seed + 4),
          .parameters = std::vector<std::uint16_t>(static_cast<std::size_t>(count))};
}

// Each special value of the gradient with each of both moments; the weights run through them too.
Subgroup special_subgroup() {
  const std::vector<float>& specials = special_floats();
  const std::size_t count = specials.size();
  Subgroup group;
  for (std::size_t m = 0; m < count; ++m) {
    for (std::size_t v = 0; v < count; ++v) {
      for (std::size_t g = 0; g < count; ++g) {
        group.master_weights.push_back(specials[(m * 7 + v * 3 + g) % count]);
        group.exp_avg.push_back(specials[m]);
        group.exp_avg_sq.push_back(specials[v]);
        group.gradient.push_back(specials[g]);
      }
    }
  }
  group.gradient_16bit = random_halves(static_cast<std::int64_t>(group.gradient.size()), 7);
  group.parameters.resize(group.gradient.size());
  return group;
}

const AdamWScalars kScalars = adamw_scalars({}, 7, 1.0 / 1024);

constexpr GradientKind kGradientKinds[] = {GradientKind::fp32, GradientKind::bf16,
                                           GradientKind::fp16};
constexpr Float16Kind kParameterKinds[] = {Float16Kind::bf16, Float16Kind::fp16};

void check_kernel_equals_reference(const Subgroup& input) {
  for (const GradientKind gradient_kind : kGradientKinds) {
    for (const Float16Kind parameter_kind : kParameterKinds) {
      Subgroup expected = input;
      adamw_reference(kScalars, expected.arrays(gradient_kind, parameter_kind));
      for_each_simd_target([&](const std::string& target) {
        CAPTURE(target, gradient_kind, parameter_kind, input.master_weights.size());
        Subgroup actual = input;
        adamw_update(kScalars, actual.arrays(gradient_kind, parameter_kind));
        CHECK(actual.same_bits(expected));
      });
    }
  }
}

TEST_CASE("the AdamW kernel equals the reference on numbers as training has them") {
  check_kernel_equals_reference(trained_subgroup(20'000, 1));
}

TEST_CASE("the AdamW kernel equals the reference on arbitrary bits") {
  check_kernel_equals_reference(random_bit_subgroup(50'000, 11));
}

TEST_CASE("the AdamW kernel equals the reference on special values in all combinations") {
  check_kernel_equals_reference(special_subgroup());
}

TEST_CASE("the AdamW kernel equals the reference with special scalars") {
  const Subgroup input = random_bit_subgroup(4'000, 23);
  for (const float special : special_floats()) {
    AdamWScalars scalars = kScalars;
    scalars.grad_scale = special;
    scalars.eps = special;
    Subgroup expected = input;
    Subgroup actual = input;
    adamw_reference(scalars, expected.arrays(GradientKind::fp32, Float16Kind::bf16));
    adamw_update(scalars, actual.arrays(GradientKind::fp32, Float16Kind::bf16));
    CAPTURE(special);
    CHECK(actual.same_bits(expected));
  }
}

// A run of any length from any element on: nothing before and nothing after it changes.
TEST_CASE("the AdamW kernel does exactly its elements, at every length and offset") {
  for_each_simd_target([&](const std::string& target) {
    int wrong = 0;
    for (std::int64_t count = 0; count <= 200; ++count) {
      const std::int64_t first = count % 5;
      const GradientKind gradient_kind = kGradientKinds[count % 3];
      const Float16Kind parameter_kind = kParameterKinds[count % 2];
      Subgroup expected =
          random_bit_subgroup(first + count + 40, static_cast<std::uint32_t>(count));
      expected.parameters.assign(expected.parameters.size(), kUntouched);
      Subgroup actual = expected;
      adamw_reference(kScalars,
                      slice(expected.arrays(gradient_kind, parameter_kind), first, count));
      adamw_update(kScalars, slice(actual.arrays(gradient_kind, parameter_kind), first, count));
      if (!actual.same_bits(expected)) ++wrong;
      for (std::size_t i = static_cast<std::size_t>(first + count); i < actual.parameters.size();
           ++i)
        wrong += actual.parameters[i] != kUntouched;
    }
    CAPTURE(target);
    CHECK(wrong == 0);
  });
}

TEST_CASE("without a 16-bit copy the state is updated all the same") {
  for (const GradientKind gradient_kind : kGradientKinds) {
    Subgroup expected = trained_subgroup(1'000, 31);
    Subgroup actual = expected;
    adamw_reference(kScalars, expected.arrays(gradient_kind, Float16Kind::bf16));
    AdamWArrays arrays = actual.arrays(gradient_kind, Float16Kind::bf16);
    arrays.parameters = nullptr;
    adamw_update(kScalars, arrays);
    actual.parameters = expected.parameters;
    CHECK(actual.same_bits(expected));
  }
}

TEST_CASE("a subgroup divided among threads gives the same bits") {
  Subgroup expected = trained_subgroup(10'001, 41);
  Subgroup actual = expected;
  adamw_update(kScalars, expected.arrays(GradientKind::bf16, Float16Kind::fp16));
  const AdamWArrays all = actual.arrays(GradientKind::bf16, Float16Kind::fp16);
  std::thread other([&] { adamw_update(kScalars, slice(all, 4'321, all.element_count - 4'321)); });
  adamw_update(kScalars, slice(all, 0, 4'321));
  other.join();
  CHECK(actual.same_bits(expected));
}

TEST_CASE("NaN is stored as one NaN, whatever went in") {
  Subgroup group = random_bit_subgroup(16, 51);
  for (float& g : group.gradient) g = std::bit_cast<float>(0xffabcdefu);
  adamw_update(kScalars, group.arrays(GradientKind::fp32, Float16Kind::bf16));
  for (std::size_t i = 0; i < 16; ++i) {
    CHECK(std::bit_cast<std::uint32_t>(group.master_weights[i]) == 0x7fc00000u);
    CHECK(std::bit_cast<std::uint32_t>(group.exp_avg[i]) == 0x7fc00000u);
    CHECK(std::bit_cast<std::uint32_t>(group.exp_avg_sq[i]) == 0x7fc00000u);
    CHECK(group.parameters[i] == 0x7fc0);
  }
}

TEST_CASE("the update follows the formula of AdamW computed in double") {
  const AdamWOptions options{
      .lr = 3e-4, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.1};
  const double scale = 1.0 / 512;
  for (const std::int64_t step : {1, 2, 10, 1'000, 1'000'000}) {
    const Subgroup before = trained_subgroup(2'000, static_cast<std::uint32_t>(step));
    Subgroup after = before;
    adamw_reference(adamw_scalars(options, step, scale),
                    after.arrays(GradientKind::fp32, Float16Kind::bf16));
    double worst = 0;
    for (std::size_t i = 0; i < before.gradient.size(); ++i) {
      const double g = before.gradient[i] * scale;
      const double m = options.beta1 * before.exp_avg[i] + (1 - options.beta1) * g;
      const double v = options.beta2 * before.exp_avg_sq[i] + (1 - options.beta2) * g * g;
      const double m_hat = m / (1 - std::pow(options.beta1, step));
      const double v_hat = v / (1 - std::pow(options.beta2, step));
      const double change = options.lr * m_hat / (std::sqrt(v_hat) + options.eps);
      const double p = before.master_weights[i] * (1 - options.lr * options.weight_decay) - change;
      // Rounding is relative to the numbers that are added, not to what is left of them.
      const double scale_of_sum = std::abs(before.master_weights[i]) + std::abs(change);
      worst = std::max(worst, std::abs(after.master_weights[i] - p) / scale_of_sum);
      worst = std::max(worst, std::abs(after.exp_avg_sq[i] - v) / v);
      CHECK(after.parameters[i] == bf16_from_float(after.master_weights[i]));
    }
    CAPTURE(step);
    CHECK(worst < 5e-7);
  }
}

TEST_CASE("the scalars of a step are the formula's, rounded once") {
  const AdamWScalars scalars = adamw_scalars({}, 1, 0.25);
  CHECK(scalars.grad_scale == 0.25f);
  CHECK(scalars.beta1 == 0.9f);
  CHECK(scalars.one_minus_beta1 == 0.1f);
  CHECK(scalars.beta2 == 0.999f);
  CHECK(scalars.one_minus_beta2 == 0.001f);  // 1 - 0.999f would be 0.0009999871
  CHECK(scalars.decay == 0.99999f);
  CHECK(scalars.minus_step_size == -0.01f);
  CHECK(scalars.inverse_sqrt_bias2 == Approx(std::sqrt(1000.0)).epsilon(1e-7));
  CHECK(scalars.eps == 1e-8f);
}

TEST_CASE("a slice points at the same elements of every array") {
  Subgroup group = trained_subgroup(100, 61);
  for (const GradientKind kind : kGradientKinds) {
    const AdamWArrays all = group.arrays(kind, Float16Kind::bf16);
    const AdamWArrays part = slice(all, 30, 70);
    CHECK(part.element_count == 70);
    CHECK(part.master_weights == all.master_weights + 30);
    CHECK(part.exp_avg == all.exp_avg + 30);
    CHECK(part.exp_avg_sq == all.exp_avg_sq + 30);
    CHECK(part.parameters == all.parameters + 30);
    CHECK(static_cast<const char*>(part.gradient) - static_cast<const char*>(all.gradient) ==
          30 * bytes_of(kind));
  }
  AdamWArrays no_copy = group.arrays(GradientKind::fp32, Float16Kind::bf16);
  no_copy.parameters = nullptr;
  CHECK(slice(no_copy, 1, 2).parameters == nullptr);
}

}  // namespace
}  // namespace sluice::optimizer
