#include "core/optimizer/gradient_stats.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "base/float16.h"
#include "tests/core/optimizer/inputs.h"

namespace sluice::optimizer {
namespace {

constexpr GradientKind kGradientKinds[] = {GradientKind::fp32, GradientKind::bf16,
                                           GradientKind::fp16};

std::uint64_t bits_of_sum(double value) { return std::bit_cast<std::uint64_t>(value); }

bool same(const GradientStats& a, const GradientStats& b) {
  return bits_of_sum(a.sum_of_squares) == bits_of_sum(b.sum_of_squares) && a.finite == b.finite;
}

// Finite gradients of each kind.
struct Gradients {
  explicit Gradients(std::int64_t count) : fp32(normal_floats(count, 1e-2f, 1)) {
    for (const float g : fp32) {
      bf16.push_back(bf16_from_float(g));
      fp16.push_back(fp16_from_float(g));
    }
  }
  const void* from(GradientKind kind, std::int64_t first) const {
    if (kind == GradientKind::fp32) return fp32.data() + first;
    return (kind == GradientKind::bf16 ? bf16 : fp16).data() + first;
  }
  std::vector<float> fp32;
  std::vector<std::uint16_t> bf16, fp16;
};

TEST_CASE("the norm equals the reference bit by bit, at every length and over blocks") {
  const Gradients gradients(3 * kNormBlockElements + 1'000);
  std::vector<std::int64_t> counts = {kNormBlockElements - 1,     kNormBlockElements,
                                      kNormBlockElements + 1,     2 * kNormBlockElements + 17,
                                      3 * kNormBlockElements + 5, 3 * kNormBlockElements + 900};
  for (std::int64_t count = 0; count <= 200; ++count) counts.push_back(count);
  for_each_simd_target([&](const std::string& target) {
    int wrong = 0;
    for (const std::int64_t count : counts) {
      for (const GradientKind kind : kGradientKinds) {
        const void* gradient = gradients.from(kind, count % 3);
        wrong += !same(gradient_stats(gradient, kind, count),
                       gradient_stats_reference(gradient, kind, count));
      }
    }
    CAPTURE(target);
    CHECK(wrong == 0);
  });
}

TEST_CASE("the sum of squares is right to double precision") {
  const Gradients gradients(100'000);
  long double exact = 0;
  for (const float g : gradients.fp32) exact += static_cast<long double>(g) * g;
  const GradientStats stats = gradient_stats(gradients.fp32.data(), GradientKind::fp32, 100'000);
  CHECK(stats.finite);
  CHECK(stats.sum_of_squares == Approx(static_cast<double>(exact)).epsilon(1e-14));
}

TEST_CASE("the norm does not depend on which blocks are measured where") {
  constexpr std::int64_t kCount = 5 * kNormBlockElements + 321;
  const Gradients gradients(kCount);
  for (const GradientKind kind : kGradientKinds) {
    const GradientStats whole = gradient_stats(gradients.from(kind, 0), kind, kCount);
    std::vector<GradientStats> blocks(6);
    for (const std::int64_t block : {4, 0, 5, 2, 1, 3}) {  // any order, as threads would
      const std::int64_t first = block * kNormBlockElements;
      blocks[static_cast<std::size_t>(block)] = gradient_stats(
          gradients.from(kind, first), kind, std::min(kNormBlockElements, kCount - first));
    }
    // A first piece of `leading` blocks, then the others one by one.
    for (std::int64_t leading = 0; leading <= 5; ++leading) {
      GradientStats total =
          gradient_stats(gradients.from(kind, 0), kind, leading * kNormBlockElements);
      for (auto block = static_cast<std::size_t>(leading); block < 6; ++block)
        total = add_block(total, blocks[block]);
      CAPTURE(kind, leading);
      CHECK(same(total, whole));
    }
  }
}

TEST_CASE("one infinite or NaN element anywhere is found") {
  constexpr std::int64_t kCount = kNormBlockElements + 100;
  for_each_simd_target([&](const std::string& target) {
    CAPTURE(target);
    int wrong = 0;
    for (const std::int64_t where :
         {std::int64_t{0}, std::int64_t{15}, std::int64_t{16}, kNormBlockElements - 1,
          kNormBlockElements, kCount - 5, kCount - 1}) {
      const auto at = static_cast<std::size_t>(where);
      for (const bool nan : {false, true}) {
        Gradients gradients(kCount);
        gradients.fp32[at] =
            nan ? std::bit_cast<float>(0xff812345u) : -std::numeric_limits<float>::infinity();
        gradients.bf16[at] = nan ? 0xff81 : 0xff80;
        gradients.fp16[at] = nan ? 0xfc01 : 0x7c00;
        for (const GradientKind kind : kGradientKinds) {
          const GradientStats stats = gradient_stats(gradients.from(kind, 0), kind, kCount);
          wrong += stats.finite;
          wrong += nan ? !std::isnan(stats.sum_of_squares) : !std::isinf(stats.sum_of_squares);
          wrong += !same(stats, gradient_stats_reference(gradients.from(kind, 0), kind, kCount));
        }
      }
    }
    CHECK(wrong == 0);
  });
}

TEST_CASE("the largest finite gradients are no overflow") {
  const std::vector<float> largest(1'000'000, -std::numeric_limits<float>::max());
  const GradientStats stats = gradient_stats(largest.data(), GradientKind::fp32, 1'000'000);
  CHECK(stats.finite);
  CHECK(std::isfinite(stats.sum_of_squares));
}

}  // namespace
}  // namespace sluice::optimizer
