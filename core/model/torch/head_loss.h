#pragma once
// Cross-entropy over a large vocabulary: given logits, everything after them in fp32, a few rows
// at a time so that no fp32 array of (tokens, vocabulary) exists. On a device that is launched
// pieces are larger than on the processor; a row's numbers do not depend on its piece.
//
// Thread contract: the compute thread.

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace sluice::model {

// Upper bound of what pieces of `rows` rows of logits take on a device that is launched; 0 where
// the processor computes, whose pieces are small.
std::int64_t launched_piece_bytes(std::int64_t rows, std::int64_t vocabulary, at::Device device);

// The token that each row has to answer; kIgnoredTarget where `some_ignored`.
struct Targets {
  at::Tensor tokens;
  bool some_ignored = false;

  Targets rows(std::int64_t first, std::int64_t count) const {
    return {tokens.narrow(0, first, count), some_ignored};
  }
};

// Sum over the rows of -log softmax(logits)[target], nats, as one fp64 value where the logits are.
// `log_sums` (fp32, one a row) receives log sum exp(logits), which the gradient needs.
at::Tensor cross_entropy_sum(const at::Tensor& logits, const Targets& targets,
                             const at::Tensor& log_sums);

// A stretch of the vocabulary, whose logits are columns of their own.
struct AnswerRange {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

// What is known of each row (fp32) as the pieces of the vocabulary go by, and of all of it behind
// the last one.
struct LossRows {
  at::Tensor log_sums;       // log sum exp(logits)
  at::Tensor target_logits;  // of the row's target

  LossRows rows(std::int64_t first, std::int64_t count) const {
    return {log_sums.narrow(0, first, count), target_logits.narrow(0, first, count)};
  }
};
// The first piece begins at answer 0 and is taken first.
void take_logits_of_piece(const at::Tensor& logits, const Targets& targets, AnswerRange piece,
                          const LossRows& into);
// As cross_entropy_sum(), of all pieces.
at::Tensor cross_entropy_sum(const LossRows& rows, const Targets& targets);

// Turns the logits into the gradient of `scale` times that sum, in place: scale * (softmax - one
// hot). The scale is applied in fp32, before the 16-bit rounding, or fp16 would lose small values.
// `column_sums` (fp32, one a token of the vocabulary; not defined: nobody asks) has the rows added,
// before that rounding: the gradient of a bias on the logits.
void cross_entropy_gradient_(const at::Tensor& logits, const Targets& targets,
                             const at::Tensor& log_sums, double scale,
                             const at::Tensor& column_sums = {});
// The same of the logits of a piece of the vocabulary, with the sums of all of it.
void cross_entropy_gradient_of_piece_(const at::Tensor& logits, const Targets& targets,
                                      AnswerRange piece, const at::Tensor& log_sums, double scale);

}  // namespace sluice::model
