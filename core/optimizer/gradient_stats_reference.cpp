#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/float16.h"
#include "core/optimizer/gradient_stats.h"

namespace sluice::optimizer {
namespace {

double gradient_at(const void* gradient, GradientKind kind, std::int64_t i) {
  if (kind == GradientKind::fp32) return static_cast<const float*>(gradient)[i];
  const std::uint16_t bits = static_cast<const std::uint16_t*>(gradient)[i];
  return kind == GradientKind::bf16 ? float_from_bf16(bits) : float_from_fp16(bits);
}

}  // namespace

GradientStats add_block(const GradientStats& before, const GradientStats& block) {
  const double sum = before.sum_of_squares + block.sum_of_squares;
  return {.sum_of_squares = std::isnan(sum) ? std::numeric_limits<double>::quiet_NaN() : sum,
          .finite = before.finite && block.finite};
}

GradientStats gradient_stats_reference(const void* gradient, GradientKind kind,
                                       std::int64_t element_count) {
  GradientStats total;
  for (std::int64_t first = 0; first < element_count; first += kNormBlockElements) {
    const std::int64_t end = std::min(first + kNormBlockElements, element_count);
    std::array<double, 16> sums{};
    GradientStats block;
    for (std::int64_t i = first; i < end; ++i) {
      const double g = gradient_at(gradient, kind, i);
      double& sum = sums[static_cast<std::size_t>((i - first) % 16)];
      sum = std::fma(g, g, sum);
      block.finite = block.finite && std::isfinite(g);
    }
    for (std::size_t width = 8; width >= 1; width /= 2) {
      for (std::size_t k = 0; k < width; ++k) sums[k] += sums[k + width];
    }
    block.sum_of_squares = sums[0];
    total = add_block(total, block);
  }
  return total;
}

}  // namespace sluice::optimizer
