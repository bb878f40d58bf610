#pragma once
// A token table that is cut into pieces of rows (core/model/layer_places.h): looked up a piece at a
// time, and its gradient likewise. Nothing depends on how many of the tokens a piece has, so that a
// device is launched without waiting for it.
//
// Thread contract: the compute thread.

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "core/model/torch/gradient_writer.h"

namespace sluice::model {

struct TablePiece {
  at::Tensor rows;             // (rows, hidden)
  std::int64_t first_row = 0;  // of the table
};

// `found` with the rows of those tokens that the piece has; undefined: nothing is found yet.
at::Tensor look_up(const TablePiece& piece, const at::Tensor& tokens, const at::Tensor& found);

// The piece's gradient: to the rows of the tokens `distinct` go their `sums` (fp32).
void put_rows(std::int64_t first_row, at::IntArrayRef shape, const at::Tensor& distinct,
              const at::Tensor& sums, GradientWriter& writer);

}  // namespace sluice::model
