#include "core/compress/sampled_top_k.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "core/compress/top_k.h"
#include "tests/allocation_count.h"
#include "tests/core/compress/gradients.h"
#include "tests/core/compress/sampled_reference.h"
#include "tests/core/optimizer/inputs.h"

namespace sluice::compress {
namespace {

// Both into equal rooms, whose unused part keeps its guards: equal rooms are equal selections.
void check_equals_reference(const NamedGradient& gradient, const SampleOptions& options,
                            std::int64_t capacity, int slice_count) {
  Kept expected(capacity);
  const SampledSelection plain = sampled_top_k_reference(gradient.values, options, expected.room());
  SampledTopKSelector selector({.kept_capacity = capacity, .slice_count = slice_count});
  Kept kept(capacity);
  const SampledSelection fast =
      sampled_top_k(gradient.values, options, slice_count, selector, kept.room());
  CAPTURE(gradient.name, gradient.values.size(), capacity, slice_count);
  CHECK(fast.kept_count == plain.kept_count);
  CHECK(fast.threshold == plain.threshold);
  CHECK(kept.same_bits(expected));
}

TEST_CASE("the sampled selection equals its definition, whatever the slices and the room") {
  for (const std::int64_t count : {0, 1, 17, 1'000, 65'536, 65'537, 90'001}) {
    for (const NamedGradient& gradient : gradients_of_every_shape(count, 101)) {
      for (const int slice_count : {1, 3}) {
        check_equals_reference(gradient, {.density = 0.01, .seed = 1}, 4'000, slice_count);
        check_equals_reference(gradient, {.density = 0.01, .seed = 1}, 100, slice_count);
      }
    }
  }
}

TEST_CASE("the sampled selection equals its definition on every instruction set") {
  for (const NamedGradient& gradient : gradients_of_every_shape(70'003, 111)) {
    optimizer::for_each_simd_target([&](const std::string& target) {
      CAPTURE(target);
      check_equals_reference(gradient, {.density = 0.02, .seed = 2}, 3'000, 2);
    });
  }
}

TEST_CASE("up to 65,536 elements the sample is all of them, and the selection exact") {
  const std::vector<float> values = optimizer::normal_floats(kSampleElements, 1, 121);
  const std::int64_t k = kept_count(0.01, kSampleElements);
  Kept expected(k);
  top_k_reference(values, k, expected.room());
  SampledTopKSelector selector({.kept_capacity = k, .slice_count = 2});
  Kept kept(k);
  CHECK(sampled_top_k(values, {.density = 0.01}, 1, selector, kept.room()).kept_count == k);
  CHECK(kept.same_bits(expected));
}

TEST_CASE("the number kept is near the density, by the deviation that the header states") {
  constexpr std::int64_t kCount = 1 << 20;
  const std::vector<float> values = heavy_tailed_floats(kCount, 131);
  SampledTopKSelector selector({.kept_capacity = kCount / 50, .slice_count = 1});
  Kept kept(kCount / 50);
  const double deviation = 1 / std::sqrt(65536 * 0.01);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const SampledSelection selection =
        sampled_top_k(values, {.density = 0.01, .seed = seed}, 1, selector, kept.room());
    const double ratio = static_cast<double>(selection.kept_count) / (0.01 * kCount);
    CHECK(std::abs(ratio - 1) < 4 * deviation);
  }
}

TEST_CASE("what does not fit is dropped from the highest index down") {
  const std::vector<float> values(10'000, 1.0f);
  SampledTopKSelector selector({.kept_capacity = 300, .slice_count = 4});
  Kept kept(300);
  CHECK(sampled_top_k(values, {}, 4, selector, kept.room()).kept_count == 300);
  CHECK(kept.indices[0] == 0);
  CHECK(kept.indices[299] == 299);
  CHECK(kept.has_untouched_guards());
}

TEST_CASE("sampling on one thread, or by phases, allocates nothing") {
  const std::vector<float> values = optimizer::normal_floats(100'000, 1, 141);
  SampledTopKSelector selector({.kept_capacity = 2'000, .slice_count = 2});
  Kept kept(2'000);
  const std::int64_t before = allocation_count();
  sampled_top_k(values, {}, 1, selector, kept.room());
  CHECK(allocation_count() == before);
}

}  // namespace
}  // namespace sluice::compress
