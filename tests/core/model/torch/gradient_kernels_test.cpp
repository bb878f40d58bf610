// Gradient work in libtorch's kernels against the host's own, to the bit.

#include "core/model/torch/gradient_kernels.h"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>

#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/split_mix.h"
#include "core/compress/top_k.h"
#include "core/optimizer/gradient_stats.h"

namespace sluice::model {
namespace {

using optimizer::GradientKind;

// Magnitudes over many powers of two, of both signs, with zeros and equal values among them.
std::vector<float> seeded_values(std::int64_t count, std::uint64_t seed) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint64_t random = split_mix(seed, i);
    const int exponent = static_cast<int>(random % 60) - 40;
    const float mantissa = 1.0F + static_cast<float>(random >> 8 & 0xff) / 256;
    values[i] =
        random % 17 == 0 ? 0.0F : std::ldexp(random >> 40 & 1 ? mantissa : -mantissa, exponent);
  }
  return values;
}

std::vector<std::uint16_t> narrowed(const std::vector<float>& values, Float16Kind kind) {
  std::vector<std::uint16_t> narrow(values.size());
  optimizer::narrow(values.data(), kind, narrow.data(), static_cast<std::int64_t>(values.size()));
  return narrow;
}

template <typename T>
at::Tensor over(std::vector<T>& values, at::ScalarType dtype) {
  return at::from_blob(values.data(), {static_cast<std::int64_t>(values.size())}, dtype);
}

// The host's statistics of each block, and of all by their sums.
void check_sums(const at::Tensor& gradient, const void* values, GradientKind kind) {
  const std::int64_t count = gradient.numel();
  const std::int64_t blocks =
      (count + optimizer::kNormBlockElements - 1) / optimizer::kNormBlockElements;
  const at::Tensor sums = at::zeros({blocks}, at::kDouble);
  put_block_sums(gradient, sums);
  optimizer::GradientStats total;
  for (std::int64_t b = 0; b < blocks; ++b) {
    const double sum = sums.data_ptr<double>()[b];
    total = optimizer::add_block(total, {sum, std::isfinite(sum)});
  }
  const optimizer::GradientStats wanted = optimizer::gradient_stats_reference(values, kind, count);
  CHECK(total.finite == wanted.finite);
  CHECK(std::bit_cast<std::uint64_t>(total.sum_of_squares) ==
        std::bit_cast<std::uint64_t>(wanted.sum_of_squares));
}

TEST_CASE("sums of squares have the host's bits, over any number of blocks") {
  const std::int64_t count =
      GENERATE(1, 17, 16384, 16385, 100000, (1 << 20) + 5, (1 << 21) + 16384);
  std::vector<float> values = seeded_values(count, static_cast<std::uint64_t>(count));
  check_sums(over(values, at::kFloat), values.data(), GradientKind::fp32);
  std::vector<std::uint16_t> bf16 = narrowed(values, Float16Kind::bf16);
  check_sums(over(bf16, at::kBFloat16), bf16.data(), GradientKind::bf16);
  std::vector<std::uint16_t> fp16 = narrowed(values, Float16Kind::fp16);
  check_sums(over(fp16, at::kHalf), fp16.data(), GradientKind::fp16);
}

TEST_CASE("an element that is not finite is seen in its block") {
  const float wrong =
      GENERATE(std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
               std::numeric_limits<float>::quiet_NaN());
  for (const std::size_t at : {std::size_t{0}, std::size_t{20000}, std::size_t{39999}}) {
    std::vector<float> values = seeded_values(40000, 3);
    values[at] = wrong;
    check_sums(over(values, at::kFloat), values.data(), GradientKind::fp32);
  }
  std::vector<float> largest_finite(100, std::numeric_limits<float>::max());
  check_sums(over(largest_finite, at::kFloat), largest_finite.data(), GradientKind::fp32);
}

bool have_same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST_CASE("accumulation rounds once, at any scale") {
  const float scale = GENERATE(1.0F, 1.0F / 65536, 0.001F, 3.7e-20F, 1.0e20F);
  const std::int64_t count = (1 << 20) + 333;
  std::vector<float> gradient = seeded_values(count, 5);
  std::vector<float> residual = seeded_values(count, 6);
  // Sums that cancel, nearly cancel, are tied between two values, and overflow.
  for (std::size_t i = 0; i < 1000; ++i) residual[i] = -gradient[i] * scale;
  for (std::size_t i = 1000; i < 2000; ++i)
    residual[i] = std::nextafter(-gradient[i] * scale, 1.0F);
  for (std::size_t i = 2000; i < 3000; ++i)
    residual[i] = gradient[i] * scale * static_cast<float>((1 << 24) + 1 - 2 * (i & 1));
  residual[3000] = std::numeric_limits<float>::infinity();
  residual[3001] = std::numeric_limits<float>::quiet_NaN();
  residual[3002] = std::numeric_limits<float>::max();
  gradient[3002] = std::numeric_limits<float>::max();
  residual[3003] = -0.0F;
  gradient[3003] = -0.0F;
  residual[3004] = std::numeric_limits<float>::denorm_min();
  std::vector<float> wanted = residual;
  compress::accumulate_residual_reference({gradient, scale, wanted});
  accumulate_into(over(residual, at::kFloat), over(gradient, at::kFloat), scale);
  CHECK(have_same_bits(residual, wanted));
}

void check_largest(std::vector<float> values, std::int64_t k) {
  const at::Tensor found = largest(over(values, at::kFloat), k);
  std::vector<std::uint32_t> indices(static_cast<std::size_t>(k));
  std::vector<float> kept(static_cast<std::size_t>(k));
  compress::top_k_reference(values, k, {indices.data(), kept.data(), k});
  REQUIRE(found.numel() == k);
  const auto* const numbers = found.data_ptr<std::int64_t>();
  CHECK(std::equal(indices.begin(), indices.end(), numbers));
}

TEST_CASE("the same elements are the largest, ties by index") {
  const std::int64_t count = GENERATE(1, 2, 1000, 50021);
  for (const std::int64_t k : {std::int64_t{1}, count / 100 + 1, count / 2 + 1, count})
    if (k <= count) check_largest(seeded_values(count, 9), k);
  check_largest(std::vector<float>(static_cast<std::size_t>(count), -2.5F), count / 3 + 1);
  std::vector<float> odd = seeded_values(count, 11);
  odd[0] = std::numeric_limits<float>::quiet_NaN();
  odd[odd.size() / 2] = -std::numeric_limits<float>::infinity();
  odd[odd.size() - 1] = -0.0F;
  check_largest(odd, count / 2 + 1);
}

}  // namespace
}  // namespace sluice::model
