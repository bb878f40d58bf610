#include "core/compress/error_feedback.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "core/compress/sampled_top_k.h"
#include "core/compress/top_k.h"
#include "tests/core/compress/gradients.h"
#include "tests/core/compress/sampled_reference.h"
#include "tests/core/optimizer/inputs.h"

namespace sluice::compress {
namespace {

using optimizer::bits_of;

// The definition of a step with feedback: accumulate, select, clear.
Kept plain_step(const std::vector<float>& gradient, float scale, std::int64_t k,
                std::vector<float>& residual) {
  accumulate_residual_reference({.gradient = gradient, .scale = scale, .residual = residual});
  Kept kept(k);
  top_k_reference(residual, k, kept.room());
  clear_residual(kept.elements(k).indices, residual);
  return kept;
}

TEST_CASE("accumulating equals the reference on numbers, special values and arbitrary bits") {
  for (const std::int64_t count : {0, 1, 15, 16, 17, 10'007}) {
    for (const NamedGradient& gradient : gradients_of_every_shape(count, 21)) {
      for (const float scale : {1.0f, 1.0f / 1024, 0.3f, std::nanf("")}) {
        std::vector<float> expected = optimizer::random_bit_floats(count, 22);
        const std::vector<float> start = expected;
        accumulate_residual_reference(
            {.gradient = gradient.values, .scale = scale, .residual = expected});
        optimizer::for_each_simd_target([&](const std::string& target) {
          std::vector<float> actual = start;
          accumulate_residual({.gradient = gradient.values, .scale = scale, .residual = actual});
          CAPTURE(target, gradient.name, count, scale);
          if (bits_of(actual) != bits_of(expected)) FAIL("another sum");
        });
      }
    }
  }
  SUCCEED();
}

TEST_CASE("steps with feedback send and leave what the definition does, on any threads") {
  constexpr std::int64_t kCount = 30'011;
  const std::int64_t k = kept_count(0.01, kCount);
  for (const int slice_count : {1, 2, 5}) {
    TopKSelector selector({.kept_capacity = k, .slice_count = slice_count});
    std::vector<float> expected_residual(kCount);
    std::vector<float> residual(kCount);
    std::uint32_t seed = 31;
    for (const NamedGradient& gradient : gradients_of_every_shape(kCount, ++seed)) {
      const Kept expected = plain_step(gradient.values, 0.125f, k, expected_residual);
      Kept kept(k);
      top_k({.gradient = gradient.values, .scale = 0.125f, .residual = residual}, k, slice_count,
            selector, kept.room());
      CAPTURE(gradient.name, slice_count);
      CHECK(kept.same_bits(expected));
      CHECK((bits_of(residual) == bits_of(expected_residual)));
    }
  }
}

TEST_CASE("what is sent and what is left add up to what came") {
  constexpr std::int64_t kCount = 5'000;
  std::vector<float> residual(kCount);
  std::vector<double> came(kCount);
  std::vector<double> sent(kCount);
  TopKSelector selector({.kept_capacity = 100, .slice_count = 1});
  for (std::uint32_t step = 0; step < 20; ++step) {
    // Multiples of 1/64 below 2^10: every sum is exact.
    std::vector<float> gradient = optimizer::normal_floats(kCount, 1, 50 + step);
    for (float& g : gradient) g = std::round(g * 64) / 64;
    Kept kept(100);
    top_k({.gradient = gradient, .residual = residual}, 100, 1, selector, kept.room());
    for (std::size_t i = 0; i < gradient.size(); ++i) came[i] += gradient[i];
    for (std::size_t i = 0; i < 100; ++i) sent[kept.indices[i]] += kept.values[i];
  }
  for (std::size_t i = 0; i < came.size(); ++i) sent[i] += residual[i];
  CHECK(sent == came);
}

TEST_CASE("with nothing kept the residual takes it all") {
  const std::vector<float> gradient = optimizer::normal_floats(1'000, 1, 81);
  std::vector<float> residual(1'000);
  TopKSelector selector({.kept_capacity = 0, .slice_count = 2});
  Kept kept(0);
  top_k({.gradient = gradient, .residual = residual}, 0, 2, selector, kept.room());
  CHECK(residual == gradient);
}

TEST_CASE("feedback with a sampled threshold: the dropped stay in the residual") {
  constexpr std::int64_t kCount = 200'003;
  const std::vector<float> gradient = optimizer::normal_floats(kCount, 1, 91);
  const std::vector<float> before = optimizer::normal_floats(kCount, 0.1f, 92);
  for (const std::int64_t capacity : {3'000, 500}) {
    std::vector<float> expected_residual = before;
    accumulate_residual_reference(
        {.gradient = gradient, .scale = 0.5f, .residual = expected_residual});
    Kept expected(capacity);
    const SampleOptions options{.density = 0.01, .seed = 93};
    const SampledSelection plain =
        sampled_top_k_reference(expected_residual, options, expected.room());
    clear_residual(expected.elements(plain.kept_count).indices, expected_residual);

    std::vector<float> residual = before;
    SampledTopKSelector selector({.kept_capacity = capacity, .slice_count = 2});
    Kept kept(capacity);
    const SampledSelection fast =
        sampled_top_k({.gradient = gradient, .scale = 0.5f, .residual = residual}, options, 2,
                      selector, kept.room());
    CAPTURE(capacity);
    CHECK(fast.kept_count == plain.kept_count);
    CHECK((bits_of(residual) == bits_of(expected_residual)));
  }
}

}  // namespace
}  // namespace sluice::compress
