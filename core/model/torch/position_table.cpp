#include "core/model/torch/position_table.h"

#include <ATen/ops/zeros.h>

namespace sluice::model {
namespace {

at::Tensor by_window(const at::Tensor& rows, WindowShape window) {
  return rows.view({window.batch, window.sequence, rows.size(1)});
}

}  // namespace

void add_positions(const at::Tensor& rows, const at::Tensor& table, const TokenPlaces& places) {
  if (places.documents.empty()) {
    by_window(rows, places.window).add_(table.narrow(0, 0, places.window.sequence));
    return;
  }
  for (const DocumentPiece& piece : places.documents)
    rows.narrow(0, piece.first, piece.count).add_(table.narrow(0, 0, piece.count));
}

at::Tensor sum_by_position(const at::Tensor& gradient, const TokenPlaces& places) {
  if (places.documents.empty())
    return by_window(gradient, places.window).sum({0}, /*keepdim=*/false, at::kFloat);
  const at::Tensor sums =
      at::zeros({places.window.sequence, gradient.size(1)}, gradient.options().dtype(at::kFloat));
  for (const DocumentPiece& piece : places.documents)
    sums.narrow(0, 0, piece.count).add_(gradient.narrow(0, piece.first, piece.count));
  return sums;
}

}  // namespace sluice::model
