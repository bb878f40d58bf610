#include "core/model/torch/head_loss.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/logaddexp.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cstdint>

#include "core/model/head_chunk.h"
#include "core/model/torch/devices.h"

namespace sluice::model {
namespace {

// kLossPieceElements elsewhere; enough to fill a GPU. Smaller pieces cost it more launches than
// work: with those of the processor the head of gpt2-124m took 10 000 launches and 120 ms a step,
// of which 34 ms were kernels (H100, 4096 tokens).
constexpr std::int64_t kLaunchedElements = std::int64_t{1} << 23;

// The arrays of a piece at once: it, its exponentials, magnitudes and what is made of those.
constexpr std::int64_t kArraysOfAPiece = 4;

std::int64_t piece_elements(at::Device device) {
  return computes_on_processor(device) ? kLossPieceElements : kLaunchedElements;
}

template <typename Function>
void for_each_piece(const at::Tensor& logits, Function&& function) {
  const std::int64_t rows =
      std::max<std::int64_t>(1, piece_elements(logits.device()) / logits.size(1));
  for (std::int64_t first = 0; first < logits.size(0); first += rows) {
    function(first, std::min(rows, logits.size(0) - first));
  }
}

// A token of the vocabulary for each row, for an ignored one any.
at::Tensor column_of(const Targets& targets) {
  const at::Tensor column = targets.tokens.unsqueeze(1);
  return targets.some_ignored ? column.clamp_min(0) : column;
}

// The same in a piece of the vocabulary: the column, and whether the target is there at all.
struct ColumnsOfPiece {
  at::Tensor column;
  at::Tensor is_there;
};

ColumnsOfPiece columns_of(const Targets& targets, AnswerRange piece) {
  const at::Tensor column = (targets.tokens - piece.first).unsqueeze(1);
  return {column.clamp(0, piece.count - 1), column.ge(0).logical_and(column.lt(piece.count))};
}

// Selected out, not multiplied by 0: logits of a row that nobody asks may be infinite.
void leave_out_ignored(const at::Tensor& rows, const Targets& targets) {
  if (!targets.some_ignored) return;
  const at::Tensor ignored = targets.tokens.lt(0);
  rows.masked_fill_(rows.dim() == 1 ? ignored : ignored.unsqueeze(1), 0);
}

}  // namespace

std::int64_t launched_piece_bytes(std::int64_t rows, std::int64_t vocabulary, at::Device device) {
  if (computes_on_processor(device)) return 0;
  return std::min(rows * vocabulary, std::max(kLaunchedElements, vocabulary)) * kArraysOfAPiece * 4;
}

at::Tensor cross_entropy_sum(const at::Tensor& logits, const Targets& targets,
                             const at::Tensor& log_sums) {
  at::Tensor sum = at::zeros({}, logits.options().dtype(at::kDouble));
  for_each_piece(logits, [&](std::int64_t first, std::int64_t rows) {
    const at::Tensor wide = logits.narrow(0, first, rows).to(at::kFloat);
    const at::Tensor piece_log_sums = log_sums.narrow(0, first, rows);
    piece_log_sums.copy_(at::logsumexp(wide, 1));
    const Targets of_piece = targets.rows(first, rows);
    const at::Tensor losses = piece_log_sums - wide.gather(1, column_of(of_piece)).squeeze(1);
    leave_out_ignored(losses, of_piece);
    sum.add_(losses.sum(at::kDouble));
  });
  return sum;
}

void take_logits_of_piece(const at::Tensor& logits, const Targets& targets, AnswerRange piece,
                          const LossRows& into) {
  const bool is_first = piece.first == 0;
  for_each_piece(logits, [&](std::int64_t first, std::int64_t rows) {
    const at::Tensor wide = logits.narrow(0, first, rows).to(at::kFloat);
    const LossRows so_far = into.rows(first, rows);
    const at::Tensor sums = at::logsumexp(wide, 1);
    so_far.log_sums.copy_(is_first ? sums : at::logaddexp(so_far.log_sums, sums));
    const ColumnsOfPiece at_target = columns_of(targets.rows(first, rows), piece);
    const at::Tensor found = wide.gather(1, at_target.column).squeeze(1);
    if (is_first) so_far.target_logits.zero_();
    so_far.target_logits.copy_(
        at::where(at_target.is_there.squeeze(1), found, so_far.target_logits));
  });
}

at::Tensor cross_entropy_sum(const LossRows& rows, const Targets& targets) {
  const at::Tensor losses = rows.log_sums - rows.target_logits;
  leave_out_ignored(losses, targets);
  return losses.sum(at::kDouble);
}

void cross_entropy_gradient_of_piece_(const at::Tensor& logits, const Targets& targets,
                                      AnswerRange piece, const at::Tensor& log_sums, double scale) {
  for_each_piece(logits, [&](std::int64_t first, std::int64_t rows) {
    const at::Tensor part = logits.narrow(0, first, rows);
    at::Tensor wide = part.to(at::kFloat);
    wide.sub_(log_sums.narrow(0, first, rows).unsqueeze(1)).exp_();
    const Targets of_rows = targets.rows(first, rows);
    const ColumnsOfPiece at_target = columns_of(of_rows, piece);
    wide.scatter_(1, at_target.column,
                  wide.gather(1, at_target.column).sub_(at_target.is_there.to(at::kFloat)));
    wide.mul_(scale);
    leave_out_ignored(wide, of_rows);
    part.copy_(wide);
  });
}

void cross_entropy_gradient_(const at::Tensor& logits, const Targets& targets,
                             const at::Tensor& log_sums, double scale,
                             const at::Tensor& column_sums) {
  for_each_piece(logits, [&](std::int64_t first, std::int64_t rows) {
    const at::Tensor piece = logits.narrow(0, first, rows);
    at::Tensor wide = piece.to(at::kFloat);
    wide.sub_(log_sums.narrow(0, first, rows).unsqueeze(1)).exp_();
    const Targets of_piece = targets.rows(first, rows);
    const at::Tensor at_target = column_of(of_piece);
    wide.scatter_(1, at_target, wide.gather(1, at_target).sub_(1.0));
    wide.mul_(scale);
    leave_out_ignored(wide, of_piece);
    if (column_sums.defined()) column_sums.add_(wide.sum(0));
    piece.copy_(wide);
  });
}

}  // namespace sluice::model
