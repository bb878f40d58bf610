#include "core/model/torch/table_pieces.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

namespace sluice::model {
namespace {

// A row of the piece for each token, and whether it is the token's.
struct RowsOfPiece {
  at::Tensor row;
  at::Tensor is_there;  // (tokens, 1)
};

RowsOfPiece rows_of(const at::Tensor& tokens, std::int64_t first_row, std::int64_t count) {
  const at::Tensor row = tokens - first_row;
  return {row.clamp(0, count - 1), row.ge(0).logical_and(row.lt(count)).unsqueeze(1)};
}

}  // namespace

at::Tensor look_up(const TablePiece& piece, const at::Tensor& tokens, const at::Tensor& found) {
  const RowsOfPiece at = rows_of(tokens, piece.first_row, piece.rows.size(0));
  const at::Tensor rows = piece.rows.index_select(0, at.row);
  if (!found.defined()) return rows;
  return at::where(at.is_there, rows, found);
}

// Tokens of other pieces add zeros to the first row or the last.
void put_rows(std::int64_t first_row, at::IntArrayRef shape, const at::Tensor& distinct,
              const at::Tensor& sums, GradientWriter& writer) {
  const at::Tensor target = writer.next(shape);
  if (!writer.adds()) target.zero_();
  const RowsOfPiece at = rows_of(distinct, first_row, shape.front());
  const at::Tensor own = at::where(at.is_there, sums, at::zeros({}, sums.options()));
  target.index_add_(0, at.row, own.to(target.scalar_type()));
}

}  // namespace sluice::model
