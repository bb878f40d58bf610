#include "core/optimizer/update_rule.h"

#include <array>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <thread>
#include <tuple>

#include "base/float16.h"
#include "tests/core/optimizer/inputs.h"

namespace sluice::optimizer {
namespace {

constexpr std::uint16_t kUntouched = 0x1234;

constexpr Float16Kind kParameterKinds[] = {Float16Kind::bf16, Float16Kind::fp16};

// Weight decay is on, so that every constant of a rule counts.
UpdateOptions options_of(RuleKind rule) {
  UpdateOptions options = default_options(rule);
  options.weight_decay = 0.01;
  return options;
}

UpdateScalars scalars_of(RuleKind rule) { return update_scalars(options_of(rule), 7, 1.0 / 1024); }

// One subgroup's arrays, of which each rule takes as many as it has.
struct Subgroup {
  std::array<std::vector<float>, kMaxStateArrays> state;
  std::vector<float> gradient;
  std::vector<std::uint16_t> gradient_16bit;
  std::vector<std::uint16_t> parameters;

  // Only pointers that the rule may use are given.
  UpdateArrays arrays(RuleKind rule, GradientKind gradient_kind, Float16Kind parameter_kind) {
    const bool wide = gradient_kind == GradientKind::fp32;
    UpdateArrays arrays{
        .element_count = std::ssize(gradient),
        .state = {},
        .gradient = wide ? static_cast<const void*>(gradient.data()) : gradient_16bit.data(),
        .gradient_kind = gradient_kind,
        .parameters = parameters.data(),
        .parameter_kind = parameter_kind};
    for (std::size_t v = 0; v < state_count(rule); ++v) arrays.state[v] = state[v].data();
    return arrays;
  }

  bool same_bits(const Subgroup& other) const {
    for (std::size_t v = 0; v < state.size(); ++v) {
      if (bits_of(state[v]) != bits_of(other.state[v])) return false;
    }
    return parameters == other.parameters;
  }
};

// exp_avg_sq and sum_sq hold no negative numbers in training.
Subgroup trained_subgroup(RuleKind rule, std::int64_t count, std::uint32_t seed) {
  Subgroup group{.state = {normal_floats(count, 0.02f, seed), normal_floats(count, 1e-3f, seed + 1),
                           normal_floats(count, 1e-6f, seed + 2)},
                 .gradient = normal_floats(count, 1e-2f, seed + 3),
                 .gradient_16bit = random_halves(count, seed + 4),
                 .parameters = std::vector<std::uint16_t>(static_cast<std::size_t>(count))};
  for (float& square : group.state[2]) square = std::abs(square);
  if (rule == RuleKind::adagrad) group.state[1] = group.state[2];
  return group;
}

Subgroup random_bit_subgroup(std::int64_t count, std::uint32_t seed) {
  return {.state = {random_bit_floats(count, seed), random_bit_floats(count, seed + 1),
                    random_bit_floats(count, seed + 2)},
          .gradient = random_bit_floats(count, seed + 3),
          .gradient_16bit = random_halves(count, seed + 4),
          .parameters = std::vector<std::uint16_t>(static_cast<std::size_t>(count))};
}

// Each special value of the gradient with each of both other arrays; the weights run through them
// too.
Subgroup special_subgroup() {
  const std::vector<float>& specials = special_floats();
  const std::size_t count = specials.size();
  Subgroup group;
  for (std::size_t m = 0; m < count; ++m) {
    for (std::size_t v = 0; v < count; ++v) {
      for (std::size_t g = 0; g < count; ++g) {
        group.state[0].push_back(specials[(m * 7 + v * 3 + g) % count]);
        group.state[1].push_back(specials[m]);
        group.state[2].push_back(specials[v]);
        group.gradient.push_back(specials[g]);
      }
    }
  }
  group.gradient_16bit = random_halves(static_cast<std::int64_t>(group.gradient.size()), 7);
  group.parameters.resize(group.gradient.size());
  return group;
}

void check_kernel_equals_reference(RuleKind rule, const Subgroup& input) {
  const UpdateScalars scalars = scalars_of(rule);
  for (const GradientKind gradient_kind : kRuleGradientKinds) {
    for (const Float16Kind parameter_kind : kParameterKinds) {
      Subgroup expected = input;
      update_reference(scalars, expected.arrays(rule, gradient_kind, parameter_kind));
      CHECK_FALSE(expected.same_bits(input));
      for_each_simd_target([&](const std::string& target) {
        CAPTURE(target, rule_info(rule).name, gradient_kind, parameter_kind, input.gradient.size());
        Subgroup actual = input;
        update(scalars, actual.arrays(rule, gradient_kind, parameter_kind));
        CHECK(actual.same_bits(expected));
      });
    }
  }
}

TEST_CASE("the kernel of each rule equals its reference on numbers as training has them") {
  for (const RuleKind rule : kRules)
    check_kernel_equals_reference(rule, trained_subgroup(rule, 20'000, 1));
}

TEST_CASE("the kernel of each rule equals its reference on arbitrary bits") {
  const Subgroup input = random_bit_subgroup(50'000, 11);
  for (const RuleKind rule : kRules) check_kernel_equals_reference(rule, input);
}

TEST_CASE("the kernel of each rule equals its reference on special values in all combinations") {
  const Subgroup input = special_subgroup();
  for (const RuleKind rule : kRules) check_kernel_equals_reference(rule, input);
}

// The usual scalars of each rule, each of them once replaced by `special`.
std::vector<UpdateScalars> special_scalars(float special) {
  std::vector<UpdateScalars> all;
  for (const RuleKind rule : kRules) {
    const UpdateScalars usual = scalars_of(rule);
    std::visit(
        [&](const auto& rule_scalars) {
          using Scalars = std::remove_cvref_t<decltype(rule_scalars)>;
          using Floats = std::array<float, sizeof(Scalars) / sizeof(float)>;
          for (std::size_t i = 0; i < std::tuple_size_v<Floats>; ++i) {
            Floats floats = std::bit_cast<Floats>(rule_scalars);
            floats[i] = special;
            all.push_back(std::bit_cast<Scalars>(floats));
          }
        },
        usual);
  }
  return all;
}

TEST_CASE("the kernel of each rule equals its reference with each scalar a special one") {
  const Subgroup input = random_bit_subgroup(1'000, 23);
  for (const float special : special_floats()) {
    for (const UpdateScalars& scalars : special_scalars(special)) {
      const auto rule = static_cast<RuleKind>(scalars.index());
      Subgroup expected = input;
      Subgroup actual = input;
      update_reference(scalars, expected.arrays(rule, GradientKind::fp32, Float16Kind::bf16));
      update(scalars, actual.arrays(rule, GradientKind::fp32, Float16Kind::bf16));
      CAPTURE(special, rule_info(rule).name);
      CHECK(actual.same_bits(expected));
    }
  }
}

// How many elements are wrong if `count` elements from `first` on are updated.
int wrong_elements(RuleKind rule, std::int64_t first, std::int64_t count) {
  const UpdateScalars scalars = scalars_of(rule);
  const GradientKind gradient_kind = kRuleGradientKinds[count % 3];
  const Float16Kind parameter_kind = kParameterKinds[count % 2];
  Subgroup expected = random_bit_subgroup(first + count + 40, static_cast<std::uint32_t>(count));
  expected.parameters.assign(expected.parameters.size(), kUntouched);
  Subgroup actual = expected;
  update_reference(scalars,
                   slice(expected.arrays(rule, gradient_kind, parameter_kind), first, count));
  update(scalars, slice(actual.arrays(rule, gradient_kind, parameter_kind), first, count));
  int wrong = actual.same_bits(expected) ? 0 : 1;
  for (std::size_t i = static_cast<std::size_t>(first + count); i < actual.parameters.size(); ++i)
    wrong += actual.parameters[i] != kUntouched;
  return wrong;
}

// A run of any length from any element on: nothing before and nothing after it changes.
TEST_CASE("the kernel of each rule does exactly its elements, at every length and offset") {
  for (const RuleKind rule : kRules) {
    for_each_simd_target([&](const std::string& target) {
      int wrong = 0;
      for (std::int64_t count = 0; count <= 200; ++count)
        wrong += wrong_elements(rule, count % 5, count);
      CAPTURE(target, rule_info(rule).name);
      CHECK(wrong == 0);
    });
  }
}

TEST_CASE("without a 16-bit copy the state is updated all the same") {
  for (const RuleKind rule : kRules) {
    for (const GradientKind gradient_kind : kRuleGradientKinds) {
      Subgroup expected = trained_subgroup(rule, 1'000, 31);
      Subgroup actual = expected;
      update_reference(scalars_of(rule), expected.arrays(rule, gradient_kind, Float16Kind::bf16));
      UpdateArrays arrays = actual.arrays(rule, gradient_kind, Float16Kind::bf16);
      arrays.parameters = nullptr;
      update(scalars_of(rule), arrays);
      actual.parameters = expected.parameters;
      CHECK(actual.same_bits(expected));
    }
  }
}

TEST_CASE("a subgroup divided among threads gives the same bits") {
  for (const RuleKind rule : kRules) {
    const UpdateScalars scalars = scalars_of(rule);
    Subgroup expected = trained_subgroup(rule, 10'001, 41);
    Subgroup actual = expected;
    update(scalars, expected.arrays(rule, GradientKind::bf16, Float16Kind::fp16));
    const UpdateArrays all = actual.arrays(rule, GradientKind::bf16, Float16Kind::fp16);
    std::thread other([&] { update(scalars, slice(all, 4'321, all.element_count - 4'321)); });
    update(scalars, slice(all, 0, 4'321));
    other.join();
    CHECK(actual.same_bits(expected));
  }
}

TEST_CASE("NaN is stored as one NaN, whatever went in") {
  for (const RuleKind rule : kRules) {
    Subgroup group = random_bit_subgroup(16, 51);
    for (float& g : group.gradient) g = std::bit_cast<float>(0xffabcdefu);
    update(scalars_of(rule), group.arrays(rule, GradientKind::fp32, Float16Kind::bf16));
    for (std::size_t i = 0; i < 16; ++i) {
      for (std::size_t v = 0; v < state_count(rule); ++v)
        CHECK(std::bit_cast<std::uint32_t>(group.state[v][i]) == 0x7fc00000u);
      CHECK(group.parameters[i] == 0x7fc0);
    }
  }
}

// One element's update in double, as the papers and torch write it.
struct InDouble {
  double p, second, third;
};

InDouble in_double(const UpdateOptions& options, double step, double g, InDouble state) {
  auto [p, second, third] = state;
  if (options.rule == RuleKind::adamw) {
    second = options.beta1 * second + (1 - options.beta1) * g;
    third = options.beta2 * third + (1 - options.beta2) * g * g;
    const double m_hat = second / (1 - std::pow(options.beta1, step));
    const double v_hat = third / (1 - std::pow(options.beta2, step));
    p -= options.lr * options.weight_decay * p;
    p -= options.lr * m_hat / (std::sqrt(v_hat) + options.eps);
    return {p, second, third};
  }
  g += options.weight_decay * p;
  if (options.rule == RuleKind::sgd) {
    second = options.momentum * second + g;
    p -= options.lr * second;
  } else {
    second += g * g;
    p -= options.lr * g / (std::sqrt(second) + options.eps);
  }
  return {p, second, third};
}

// Rounding is relative to the numbers that are added, not to what is left of them.
double difference(double actual, double expected, double before) {
  return std::abs(actual - expected) / (std::abs(before) + std::abs(expected - before));
}

TEST_CASE("each update follows its formula computed in double") {
  const double scale = 1.0 / 512;
  for (const RuleKind rule : kRules) {
    for (const std::int64_t step : {1, 2, 10, 1'000, 1'000'000}) {
      UpdateOptions options = options_of(rule);
      options.lr = 3e-4;
      options.beta2 = 0.95;
      options.weight_decay = 0.1;
      const Subgroup before = trained_subgroup(rule, 2'000, static_cast<std::uint32_t>(step));
      Subgroup after = before;
      update_reference(update_scalars(options, step, scale),
                       after.arrays(rule, GradientKind::fp32, Float16Kind::bf16));
      double worst = 0;
      for (std::size_t i = 0; i < before.gradient.size(); ++i) {
        const InDouble start{before.state[0][i], before.state[1][i], before.state[2][i]};
        const InDouble end =
            in_double(options, static_cast<double>(step), before.gradient[i] * scale, start);
        worst = std::max(worst, difference(after.state[0][i], end.p, start.p));
        worst = std::max(worst, difference(after.state[1][i], end.second, start.second));
        worst = std::max(worst, difference(after.state[2][i], end.third, start.third));
        CHECK(after.parameters[i] == bf16_from_float(after.state[0][i]));
      }
      CAPTURE(step, rule_info(rule).name);
      CHECK(worst < 5e-7);
    }
  }
}

TEST_CASE("the scalars of a step are the formula's, rounded once") {
  const auto adamw = std::get<AdamWScalars>(update_scalars({}, 1, 0.25));
  CHECK(adamw.grad_scale == 0.25f);
  CHECK(adamw.beta1 == 0.9f);
  CHECK(adamw.one_minus_beta1 == 0.1f);
  CHECK(adamw.beta2 == 0.999f);
  CHECK(adamw.one_minus_beta2 == 0.001f);  // 1 - 0.999f would be 0.0009999871
  CHECK(adamw.decay == 0.99999f);
  CHECK(adamw.minus_step_size == -0.01f);
  CHECK(adamw.inverse_sqrt_bias2 == Approx(std::sqrt(1000.0)).epsilon(1e-7));
  CHECK(adamw.eps == 1e-8f);

  const auto sgd = std::get<SgdScalars>(update_scalars(options_of(RuleKind::sgd), 5, 0.25));
  CHECK(sgd.grad_scale == 0.25f);
  CHECK(sgd.weight_decay == 0.01f);
  CHECK(sgd.momentum == 0.9f);
  CHECK(sgd.minus_lr == -0.1f);

  const auto adagrad =
      std::get<AdaGradScalars>(update_scalars(options_of(RuleKind::adagrad), 5, 0.25));
  CHECK(adagrad.grad_scale == 0.25f);
  CHECK(adagrad.weight_decay == 0.01f);
  CHECK(adagrad.minus_lr == -0.01f);
  CHECK(adagrad.eps == 1e-10f);
}

TEST_CASE("what a rule is called and what its state is made of") {
  CHECK(rule_info(RuleKind::adamw).name == std::string("adamw"));
  CHECK(rule_info(RuleKind::sgd).name == std::string("sgd"));
  CHECK(rule_info(RuleKind::adagrad).name == std::string("adagrad"));
  CHECK(rule_info(RuleKind::adamw).state_count() == 3);
  CHECK(rule_info(RuleKind::sgd).state_count() == 2);
  CHECK(rule_info(RuleKind::adagrad).state_count() == 2);
  for (const RuleKind rule : kRules) {
    CHECK(rule_info(rule).state_names[0] == std::string("master_weights"));
    CHECK(&rule_info(scalars_of(rule)) == &rule_info(rule));
    CHECK(default_options(rule).rule == rule);
  }
}

TEST_CASE("a slice points at the same elements of every array") {
  for (const RuleKind rule : kRules) {
    Subgroup group = trained_subgroup(rule, 100, 61);
    for (const GradientKind kind : kRuleGradientKinds) {
      const UpdateArrays all = group.arrays(rule, kind, Float16Kind::bf16);
      const UpdateArrays part = slice(all, 30, 70);
      CHECK(part.element_count == 70);
      for (std::size_t v = 0; v < part.state.size(); ++v)
        CHECK(part.state[v] == (v < state_count(rule) ? all.state[v] + 30 : nullptr));
      CHECK(part.parameters == all.parameters + 30);
      CHECK(static_cast<const char*>(part.gradient) - static_cast<const char*>(all.gradient) ==
            30 * bytes_of(kind));
    }
    UpdateArrays no_copy = group.arrays(rule, GradientKind::fp32, Float16Kind::bf16);
    no_copy.parameters = nullptr;
    CHECK(slice(no_copy, 1, 2).parameters == nullptr);
  }
}

}  // namespace
}  // namespace sluice::optimizer
