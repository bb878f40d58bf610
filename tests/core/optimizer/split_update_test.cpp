// The soak tests: core_optimizer_test '[.soak]', minutes.

#include "core/optimizer/split_update.h"

#include <bit>
#include <catch2/catch.hpp>
#include <cmath>

#include "base/float16.h"
#include "tests/base/stored_memory.h"
#include "tests/core/optimizer/inputs.h"

namespace sluice::optimizer {
namespace {

constexpr StateFormat kFormats[] = {
    {StateFormatKind::exact, 16}, {StateFormatKind::compact, 16}, {StateFormatKind::compact, 8}};
constexpr StateFormat kExact = kFormats[0];

constexpr std::uint64_t kSeed = 0x123456789abcdefu;
// From here on the upper half of flat indices changes within a subgroup.
constexpr std::int64_t kFirstFlatIndex = (std::int64_t{1} << 32) - 8192;

UpdateScalars scalars_of(RuleKind rule, std::int64_t optimizer_step) {
  UpdateOptions options = default_options(rule);
  options.weight_decay = 0.01;
  return update_scalars(options, optimizer_step, 1.0 / 1024);
}

// Decoded arrays and gradients, of which each rule and kind takes its own.
struct Inputs {
  std::vector<std::vector<float>> state;
  std::vector<float> gradient;
  std::vector<std::uint16_t> gradient_16bit;

  std::int64_t count() const { return std::ssize(gradient); }
  const void* gradient_of(GradientKind kind) const {
    return kind == GradientKind::fp32 ? static_cast<const void*>(gradient.data())
                                      : gradient_16bit.data();
  }
};

// What the rule sums squares in is never negative.
Inputs with_squares(RuleKind rule, Inputs inputs) {
  inputs.state.resize(state_count(rule));
  if (rule == RuleKind::sgd) return inputs;
  for (float& square : inputs.state.back()) square = std::abs(square);
  return inputs;
}

// Scales over 120 binades, group by group and in one group of eight element by element; and each
// special value now and then.
Inputs adversarial(RuleKind rule, std::int64_t count, std::uint32_t seed) {
  Inputs inputs{.state = {normal_floats(count, 1, seed), normal_floats(count, 1, seed + 1),
                          normal_floats(count, 1, seed + 2)},
                .gradient = normal_floats(count, 1024, seed + 3),
                .gradient_16bit = random_halves(count, seed + 4)};
  std::mt19937 random(seed);
  const auto binade = [&random] { return static_cast<int>(random() % 121) - 60; };
  const auto spoil = [&](std::vector<float>& values) {
    int of_group = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i % kGroupElements == 0) of_group = binade();
      const bool alone = i / kGroupElements % 8 == 7;
      values[i] = std::ldexp(values[i], alone ? binade() : of_group);
      if (random() % 16 == 0) values[i] = std::copysign(0.0f, values[i]);
    }
  };
  for (std::vector<float>& array : inputs.state) spoil(array);
  spoil(inputs.gradient);
  return with_squares(rule, inputs);
}

// Not finite, subnormal and other special values in some groups: in one of them they make all codes
// worthless.
Inputs special(RuleKind rule, std::int64_t count, std::uint32_t seed) {
  Inputs inputs = adversarial(rule, count, seed);
  std::mt19937 random(seed);
  const std::vector<float>& specials = special_floats();
  const auto spoil = [&](std::vector<float>& values) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i / kGroupElements % 3 == 1 && random() % 32 == 0)
        values[i] = specials[random() % specials.size()];
    }
  };
  for (std::vector<float>& array : inputs.state) spoil(array);
  spoil(inputs.gradient);
  return with_squares(rule, inputs);
}

SplitArrays arrays_of(StoredMemory& memory, const Inputs& inputs, GradientKind kind,
                      std::int64_t optimizer_step) {
  return {.state = memory.span(),
          .gradient = inputs.gradient_of(kind),
          .gradient_kind = kind,
          .rounding = CodeRounding::of_step(kSeed, optimizer_step),
          .first_flat_index = kFirstFlatIndex};
}

// Some steps of the reference, and of the kernel on each instruction set.
void check_kernel_equals_reference(RuleKind rule, const StateFormat& format, GradientKind kind,
                                   const Inputs& inputs, const StoredMemory& start) {
  constexpr std::int64_t kSteps = 3;
  std::vector<StoredMemory> expected;
  StoredMemory reference = start;
  for (std::int64_t step = 1; step <= kSteps; ++step) {
    update_reference(scalars_of(rule, step), arrays_of(reference, inputs, kind, step));
    expected.push_back(reference);
  }
  for_each_simd_target([&](const std::string& target) {
    CAPTURE(target, rule_info(rule).name, format.kind, format.remainder_bits, kind, inputs.count());
    StoredMemory actual = start;
    for (std::int64_t step = 1; step <= kSteps; ++step) {
      update(scalars_of(rule, step), arrays_of(actual, inputs, kind, step));
      CHECK(actual.bytes == expected[static_cast<std::size_t>(step - 1)].bytes);
    }
  });
}

template <typename Make>
void check_kernel_on(std::int64_t count, const Make& make) {
  for (const RuleKind rule : kRules) {
    const Inputs inputs = make(rule, count, static_cast<std::uint32_t>(count));
    for (const StateFormat& format : kFormats) {
      // Bytes that nothing is stored in must not differ either.
      StoredMemory start(stored_arrays(rule, format), count, std::byte{0xa5});
      start.encode(inputs.state, CodeRounding::of_step(kSeed, 0), kFirstFlatIndex);
      for (const GradientKind kind : kRuleGradientKinds)
        check_kernel_equals_reference(rule, format, kind, inputs, start);
    }
  }
}

TEST_CASE("the split kernel equals its reference at every size, scales over 120 binades") {
  for (const std::int64_t count : {1, 63, 64, 65, 200, 4095, 4096, 4097, 16384, 20000})
    check_kernel_on(count, adversarial);
}

TEST_CASE("the split kernel equals its reference on what is not finite, and on subnormals") {
  for (const std::int64_t count : {64, 5000}) check_kernel_on(count, special);
}

// Codes and scales that no encoder writes, too.
TEST_CASE("the split kernel equals its reference on arbitrary bytes") {
  constexpr std::int64_t kCount = 5000;
  std::mt19937 random(7);
  for (const RuleKind rule : kRules) {
    const Inputs inputs = special(rule, kCount, 3);
    for (const StateFormat& format : kFormats) {
      StoredMemory start(stored_arrays(rule, format), kCount);
      for (std::vector<std::byte>& array : start.bytes) {
        for (std::byte& byte : array) byte = static_cast<std::byte>(random());
      }
      check_kernel_equals_reference(rule, format, GradientKind::fp32, inputs, start);
    }
  }
}

TEST_CASE("the split kernel rounds to the nearest where that is asked for") {
  for (const StateFormat& format : kFormats) {
    const Inputs inputs = adversarial(RuleKind::adamw, 4100, 5);
    StoredMemory actual(stored_arrays(RuleKind::adamw, format), inputs.count());
    actual.encode(inputs.state, CodeRounding::nearest());
    StoredMemory expected = actual;
    SplitArrays arrays = arrays_of(actual, inputs, GradientKind::fp32, 1);
    arrays.rounding = CodeRounding::nearest();
    update(scalars_of(RuleKind::adamw, 1), arrays);
    arrays.state = expected.span();
    update_reference(scalars_of(RuleKind::adamw, 1), arrays);
    CHECK(actual.bytes == expected.bytes);
  }
}

TEST_CASE("parts of a split subgroup give the bits of the whole") {
  for (const RuleKind rule : kRules) {
    const Inputs inputs = adversarial(rule, 20000, 9);
    for (const StateFormat& format : kFormats) {
      StoredMemory whole(stored_arrays(rule, format), inputs.count());
      whole.encode(inputs.state, CodeRounding::of_step(kSeed, 0), kFirstFlatIndex);
      StoredMemory parts = whole;
      const SplitArrays all = arrays_of(parts, inputs, GradientKind::bf16, 1);
      update(scalars_of(rule, 1), arrays_of(whole, inputs, GradientKind::bf16, 1));
      update(scalars_of(rule, 1), slice(all, 3 * kBlockElements, 20000 - 3 * kBlockElements));
      update(scalars_of(rule, 1), slice(all, 0, kBlockElements));
      update(scalars_of(rule, 1), slice(all, kBlockElements, 2 * kBlockElements));
      CAPTURE(rule_info(rule).name, format.kind, format.remainder_bits);
      CHECK(parts.bytes == whole.bytes);
    }
  }
}

// Exact beside fp32 ------------------------------------------------------------------------------

// Weights of which many lie between two copies, and gradients of which many are 0, of either sign,
// so that they stay there.
Inputs with_ties(RuleKind rule, std::int64_t count, std::uint32_t seed) {
  Inputs inputs{.state = {normal_floats(count, 0.02f, seed),
                          std::vector<float>(static_cast<std::size_t>(count)),
                          std::vector<float>(static_cast<std::size_t>(count))},
                .gradient = normal_floats(count, 4, seed + 3),
                .gradient_16bit = {}};
  std::mt19937 random(seed);
  for (std::size_t i = 0; i < inputs.gradient.size(); ++i) {
    if (random() % 4 == 0) {
      const auto bits = std::bit_cast<std::uint32_t>(inputs.state[0][i]);
      inputs.state[0][i] = std::bit_cast<float>((bits & 0xffff0000u) | 0x8000u);
    }
    if (random() % 3 == 0) inputs.gradient[i] = std::copysign(0.0f, inputs.gradient[i]);
    inputs.gradient_16bit.push_back(bf16_from_float(inputs.gradient[i]));
  }
  inputs.state.resize(state_count(rule));
  return inputs;
}

// The same state in fp32.
class Plain {
 public:
  Plain(RuleKind rule, const Inputs& inputs)
      : rule_(rule), state_(inputs.state), copy_(inputs.gradient.size()) {}

  void update(const Inputs& inputs, GradientKind kind, const UpdateScalars& scalars) {
    UpdateArrays arrays{.element_count = inputs.count(),
                        .gradient = inputs.gradient_of(kind),
                        .gradient_kind = kind,
                        .parameters = copy_.data()};
    for (std::size_t v = 0; v < state_.size(); ++v) arrays.state[v] = state_[v].data();
    optimizer::update(scalars, arrays);
  }

  // How many of the copy are rounded down from a tie.
  std::int64_t tie_count() const {
    std::int64_t ties = 0;
    for (std::size_t i = 0; i < copy_.size(); ++i) {
      const std::uint32_t high = std::uint32_t{copy_[i]} << 16;
      ties += std::bit_cast<std::uint32_t>(state_[0][i]) - high == 0x8000u;
    }
    return ties;
  }

  bool is_in(StoredMemory& split) const {
    for (std::size_t v = 0; v < state_.size(); ++v) {
      if (bits_of(split.decoded(static_cast<std::int32_t>(v))) != bits_of(state_[v])) return false;
    }
    const auto* copy = reinterpret_cast<const std::uint16_t*>(split.bytes[0].data());
    return std::equal(copy_.begin(), copy_.end(), copy);
  }

 private:
  RuleKind rule_;
  std::vector<std::vector<float>> state_;
  std::vector<std::uint16_t> copy_;
};

UpdateScalars without_decay(RuleKind rule, std::int64_t step) {
  UpdateOptions options = default_options(rule);
  options.weight_decay = 0;
  return update_scalars(options, step, 1.0);
}

// Ties in the last step.
std::int64_t check_exact_is_fp32(RuleKind rule, GradientKind kind, const Inputs& inputs,
                                 std::int64_t steps) {
  Plain plain(rule, inputs);
  StoredMemory split(stored_arrays(rule, kExact), inputs.count());
  split.encode(inputs.state, CodeRounding::nearest());
  for (std::int64_t step = 1; step <= steps; ++step) {
    const UpdateScalars scalars = without_decay(rule, step);
    plain.update(inputs, kind, scalars);
    update(scalars, arrays_of(split, inputs, kind, step));
    if (step % 20 == 1 || step == steps) {
      CAPTURE(rule_info(rule).name, kind, step);
      CHECK(plain.is_in(split));
    }
  }
  return plain.tie_count();
}

TEST_CASE("exact state is that of fp32 in every bit, and so is the copy, ties included") {
  for (const RuleKind rule : kRules) {
    const Inputs inputs = with_ties(rule, 10'000, 71);
    for (const GradientKind kind : kRuleGradientKinds)
      CHECK(check_exact_is_fp32(rule, kind, inputs, 100) > 100);
  }
}

TEST_CASE("exact state is that of fp32 on a hundred million elements of each rule", "[.soak]") {
  for (const RuleKind rule : kRules) {
    for (std::uint32_t round = 0; round < 48; ++round) {
      const Inputs ordinary = with_ties(rule, 1 << 20, 1'000 + 10 * round);
      check_exact_is_fp32(rule, kRuleGradientKinds[round % 3], ordinary, 3);
      const Inputs strange = special(rule, (1 << 20) + 13, 2'000 + 10 * round);
      check_exact_is_fp32(rule, kRuleGradientKinds[round % 3], strange, 3);
    }
  }
}

TEST_CASE("the split kernel equals its reference on a million elements, over and over", "[.soak]") {
  for (int round = 0; round < 4; ++round) {
    check_kernel_on((1 << 20) + 13 + round, adversarial);
    check_kernel_on((1 << 20) + 77 + round, special);
  }
}

}  // namespace
}  // namespace sluice::optimizer
