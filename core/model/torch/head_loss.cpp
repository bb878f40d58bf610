#include "core/model/torch/head_loss.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cstdint>

namespace sluice::model {
namespace {

// fp32 values of one piece; about the second-level cache of a core.
constexpr std::int64_t kPieceElements = std::int64_t{1} << 19;

template <typename Function>
void for_each_piece(const at::Tensor& logits, Function&& function) {
  const std::int64_t rows = std::max<std::int64_t>(1, kPieceElements / logits.size(1));
  for (std::int64_t first = 0; first < logits.size(0); first += rows) {
    function(first, std::min(rows, logits.size(0) - first));
  }
}

}  // namespace

at::Tensor cross_entropy_sum(const at::Tensor& logits, const at::Tensor& targets,
                             const at::Tensor& log_sums) {
  at::Tensor sum = at::zeros({}, logits.options().dtype(at::kDouble));
  for_each_piece(logits, [&](std::int64_t first, std::int64_t rows) {
    const at::Tensor wide = logits.narrow(0, first, rows).to(at::kFloat);
    const at::Tensor piece_log_sums = log_sums.narrow(0, first, rows);
    piece_log_sums.copy_(at::logsumexp(wide, 1));
    const at::Tensor chosen =
        wide.gather(1, targets.narrow(0, first, rows).unsqueeze(1)).squeeze(1);
    sum.add_((piece_log_sums - chosen).sum(at::kDouble));
  });
  return sum;
}

void cross_entropy_gradient_(const at::Tensor& logits, const at::Tensor& targets,
                             const at::Tensor& log_sums, double scale) {
  for_each_piece(logits, [&](std::int64_t first, std::int64_t rows) {
    const at::Tensor piece = logits.narrow(0, first, rows);
    at::Tensor wide = piece.to(at::kFloat);
    wide.sub_(log_sums.narrow(0, first, rows).unsqueeze(1)).exp_();
    const at::Tensor at_target = targets.narrow(0, first, rows).unsqueeze(1);
    wide.scatter_(1, at_target, wide.gather(1, at_target).sub_(1.0));
    wide.mul_(scale);
    piece.copy_(wide);
  });
}

}  // namespace sluice::model
