// The layers of StackModel that are pieces of tables (core/model/layer_places.h). Each piece of the
// output table makes logits of its own, of which each row's sum grows as the pieces go by; going
// back, with all of the sum known, a piece's logits are differentiated alone.

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <utility>

#include "core/model/torch/check.h"
#include "core/model/torch/products.h"
#include "core/model/torch/stack_model.h"

namespace sluice::model {

TablePiece StackModel::embedding_piece(LayerId layer, const FlatViews& views) const {
  return {views.of(layer)[architecture_.token_table], places().first_row(layer)};
}

void StackModel::forward_output(LayerId layer, MicroBatch& micro, at::Tensor& loss_sum) const {
  const at::NoGradGuard no_grad;
  const at::Tensor& normed = micro.pieces.normed;
  const AnswerRange piece = answers_of(layer);
  if (piece.first == 0) {
    const at::TensorOptions wide = normed.options().dtype(at::kFloat);
    micro.loss_rows = {at::empty({normed.size(0)}, wide), at::empty({normed.size(0)}, wide)};
  }
  const Targets targets = micro.numbers.targets();
  for (const HeadChunk& chunk : micro.head_chunks) {
    take_logits_of_piece(logits_of(layer, micro, chunk, normed),
                         targets.rows(chunk.first, chunk.count), piece,
                         micro.loss_rows.rows(chunk.first, chunk.count));
  }
  if (layer != places().last()) return;
  loss_sum.zero_();
  loss_sum.narrow(0, 0, 1).add_(cross_entropy_sum(micro.loss_rows, targets));
  if (micro.use != BatchUse::training) micro.pieces = {};
}

void StackModel::backward_output(LayerId layer, MicroBatch& micro, double gradient_scale,
                                 GradientWriter& writer) {
  const at::NoGradGuard no_grad;
  PieceRows& rows = micro.pieces;
  if (layer == places().last())
    rows.normed_gradient = at::zeros(rows.normed.sizes(), rows.normed.options().dtype(at::kFloat));
  const double scale = gradient_scale / micro.numbers.loss_divisor();
  const bool trains_tables = !shape_.has_adapters();
  const Targets targets = micro.numbers.targets();
  for (const HeadChunk& chunk : micro.head_chunks) {
    const at::Tensor& room = micro.logits[logits_place(layer)];
    const at::Tensor logits = keeps_logits(layer) ? room.narrow(0, chunk.first, chunk.count)
                                                  : logits_of(layer, micro, chunk, rows.normed);
    cross_entropy_gradient_of_piece_(
        logits, targets.rows(chunk.first, chunk.count), answers_of(layer),
        micro.loss_rows.log_sums.narrow(0, chunk.first, chunk.count), scale);
    rows.normed_gradient.narrow(0, chunk.first, chunk.count)
        .add_(product(logits, output_table(views_, layer)));
    if (trains_tables)
      output_gradient_.add_from_head(logits, rows.normed.narrow(0, chunk.first, chunk.count));
  }
  if (trains_tables) output_gradient_.put_alone(writer);
  if (answers_of(layer).first == 0) rows.normed = at::Tensor();
}

void StackModel::backward_cut_head(MicroBatch& micro, GradientWriter& writer) {
  const KeptLayer kept = take_layer(head(), micro);
  const at::Tensor normed_gradient =
      std::exchange(micro.pieces.normed_gradient, at::Tensor()).to(kept.output.scalar_type());
  propagate(head(), kept, views_.of(head()).in_flat_order(), normed_gradient, micro, writer);
}

void StackModel::backward_embedding_piece(LayerId layer, MicroBatch& micro,
                                          GradientWriter& writer) {
  const at::NoGradGuard no_grad;
  if (index_of(layer) + 1 == places().embeddings) {
    CHECK(micro.stream_gradient.defined());
    const at::Tensor x_gradient = micro.dropout.of_rows(
        std::exchange(micro.stream_gradient, at::Tensor()), embedding_drop_place());
    micro.pieces.token_sums = micro.numbers.sum_by_token(x_gradient.to(at::kFloat));
  }
  put_rows(places().first_row(layer), views_.of(layer)[architecture_.token_table].sizes(),
           micro.numbers.distinct(), micro.pieces.token_sums, writer);
  if (index_of(layer) == 0) micro.pieces.token_sums = at::Tensor();
}

}  // namespace sluice::model
