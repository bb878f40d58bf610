#pragma once
// The gradient of the output table. Where it is the token table, it is used twice: by the head (a
// dense gradient, known first) and by the embedding (a few rows, known last), and the head's part
// waits here. A table of the head's own is added up here, and is put with the head.
//
// Precision: each product of the head comes from libtorch rounded to 16 bits. With one product a
// step (one micro-batch that fits one token chunk) it waits as it is, 2 bytes an element; with more
// of them they are added in fp32, 4 bytes an element. The embedding's rows are summed in fp32 in
// the order of the tokens and added in fp32; the result is rounded at most once more, into the
// caller's 16-bit array. No order depends on threads: the same inputs give the same bits.
//
// Thread contract: as TrainableModel.

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "core/model/torch/batch_numbers.h"
#include "core/model/torch/gradient_writer.h"

namespace sluice::model {

class OutputGradient {
 public:
  enum class Parts : std::uint8_t { one, several };
  struct Table {
    std::int64_t vocabulary = 0;
    std::int64_t answers = 0;  // the output table's rows: the vocabulary's, a piece's, or classes
    std::int64_t hidden = 0;
    at::TensorOptions like;  // type and device of the model's parameters
    Parts parts = Parts::one;
    bool waits = true;  // for the embedding's part; its memory is there all along then
  };

  explicit OutputGradient(const Table& table);

  // Forgets what a step that was given up has left.
  void drop() { pending_ = false; }

  // logits_gradient (tokens, answers; of a table that is cut the last piece may have fewer), normed
  // (tokens, hidden).
  void add_from_head(const at::Tensor& logits_gradient, const at::Tensor& normed);

  // Puts head's part (once, at the first call after it was added to) and the embedding's part of
  // one micro-batch into the caller's array; `x_gradient` is (tokens, hidden). Without a head's
  // part it is the gradient of a token table that is no output table.
  void put_tied(const BatchNumbers& numbers, const at::Tensor& x_gradient, GradientWriter& writer);

  // Puts head's part of one micro-batch alone.
  void put_alone(GradientWriter& writer);

 private:
  at::Tensor empty_part(std::int64_t rows) const;

  Table table_;
  at::Tensor head_part_;  // (answers, hidden)
  bool pending_ = false;  // head_part_ holds something that no put() has taken
};

}  // namespace sluice::model
