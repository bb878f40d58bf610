#include "core/model/torch/gradient_kernels.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/topk.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <limits>

#include "core/model/torch/check.h"
#include "core/optimizer/gradient_stats.h"

namespace sluice::model {
namespace {

constexpr std::int64_t kLanes = 16;  // interleaved sums of a block
constexpr std::int64_t kBlockElements = optimizer::kNormBlockElements;
static_assert(kPieceElements % kBlockElements == 0);

// A square of an fp32 value is exact in fp64, so a product and a sum round as the host's fused ones
// do. A running sum along the outer dimension goes in order, lane by lane.
at::Tensor lane_sums(const at::Tensor& piece, std::int64_t block_count) {
  at::Tensor squares =
      at::zeros({block_count * kBlockElements}, piece.options().dtype(at::kDouble));
  squares.narrow(0, 0, piece.numel()).copy_(piece);
  squares.mul_(squares);
  const std::int64_t rows = kBlockElements / kLanes;
  return squares.view({block_count, rows, kLanes}).cumsum_(1).select(1, rows - 1);
}

// gradient x scale + residual in fp64, where the product is exact, and the sum rounded to odd: the
// rounding to fp32 that follows is then the only one (Boldo and Melquiond, "Emulation of a FMA and
// correctly rounded sums: proved algorithms using rounding to odd", 2008).
at::Tensor rounded_to_odd(const at::Tensor& gradient, float scale, const at::Tensor& residual) {
  const at::Tensor product = gradient.to(at::kDouble).mul_(static_cast<double>(scale));
  const at::Tensor addend = residual.to(at::kDouble);
  at::Tensor sum = product + addend;
  const at::Tensor seen = sum - product;  // Knuth's two-sum: what rounding has lost
  at::Tensor lost = sum - seen;
  lost = (product - lost).add_(addend - seen);
  const at::Tensor bits = sum.view(at::kLong);
  const at::Tensor moves =
      lost.gt(0).logical_or_(lost.lt(0)).logical_and_(bits.bitwise_and(1).eq(0));
  // One step away from zero where what was lost has the sum's sign, towards it elsewhere.
  const at::Tensor steps = lost.gt(0).eq(sum.gt(0)).to(at::kLong).mul_(2).sub_(1);
  bits.add_(steps.mul_(moves));
  return sum;
}

at::Tensor with_one_nan(const at::Tensor& values) {
  return at::where(values.isnan(),
                   at::scalar_tensor(std::numeric_limits<float>::quiet_NaN(), values.options()),
                   values);
}

}  // namespace

void put_block_sums(const at::Tensor& gradient, const at::Tensor& sums) {
  const std::int64_t count = gradient.numel();
  CHECK_EQ(sums.numel(), optimizer::norm_block_count(count));
  for (std::int64_t first = 0; first < count; first += kPieceElements) {
    const at::Tensor piece = gradient.narrow(0, first, std::min(kPieceElements, count - first));
    const std::int64_t block_count = optimizer::norm_block_count(piece.numel());
    at::Tensor lanes = lane_sums(piece, block_count);
    for (std::int64_t width = kLanes / 2; width >= 1; width /= 2)
      lanes = lanes.narrow(1, 0, width) + lanes.narrow(1, width, width);
    sums.narrow(0, first / kBlockElements, block_count).copy_(lanes.view({block_count}));
  }
}

void accumulate_into(const at::Tensor& residual, const at::Tensor& gradient, float scale) {
  const std::int64_t count = residual.numel();
  for (std::int64_t first = 0; first < count; first += kPieceElements) {
    const std::int64_t length = std::min(kPieceElements, count - first);
    const at::Tensor into = residual.narrow(0, first, length);
    const at::Tensor from = gradient.narrow(0, first, length);
    const at::Tensor sum =
        scale == 1 ? from.to(at::kFloat) + into : rounded_to_odd(from, scale, into).to(at::kFloat);
    into.copy_(with_one_nan(sum));
  }
}

// The magnitude in the upper half of a key and, since lower indices come first, what is left of the
// indices in the lower one: no two keys are equal, so any top-k gives the same elements.
at::Tensor largest(const at::Tensor& values, std::int64_t k) {
  const at::Tensor magnitudes = values.view(at::kInt).bitwise_and(0x7fffffff);
  at::Tensor keys = magnitudes.to(at::kLong).mul_(std::int64_t{1} << 32);
  keys.sub_(at::arange(values.numel(), keys.options()));
  const at::Tensor indices = std::get<1>(at::topk(keys, k, 0, /*largest=*/true, /*sorted=*/false));
  return std::get<0>(at::sort(indices));
}

}  // namespace sluice::model
