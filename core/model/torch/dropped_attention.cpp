// Attention whose weights are dropped: libtorch's kernels on a processor have no dropout, so the
// weights are there, of some heads of a window at a time, and backward makes them once more from
// the sums that forward kept.

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/model/dropped_weights.h"
#include "core/model/torch/attention_heads.h"
#include "core/model/torch/document_mask.h"
#include "core/model/torch/dropout.h"
#include "core/model/torch/kept_drop.h"
#include "core/model/window_shape.h"

namespace sluice::model {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct Call {
  WindowShape window;
  std::int64_t heads = 0;
  Sees sees = Sees::back;
  at::Tensor documents;  // not defined: they are together
  KeptDrop drop;

  void keep(AutogradContext* context) const {
    auto& kept = context->saved_data;
    kept["batch"] = window.batch;
    kept["sequence"] = window.sequence;
    kept["heads"] = heads;
    kept["sees_all"] = sees == Sees::all;
    if (documents.defined()) kept["documents"] = documents;  // the model's, of no layer
    drop.keep(context);
  }
  static Call kept_in(AutogradContext* context) {
    auto& kept = context->saved_data;
    const c10::IValue& documents = kept["documents"];
    return {{kept["batch"].toInt(), kept["sequence"].toInt()},
            kept["heads"].toInt(),
            kept["sees_all"].toBool() ? Sees::all : Sees::back,
            documents.isTensor() ? documents.toTensor() : at::Tensor(),
            KeptDrop::kept_in(context)};
  }
};

// Heads [first, first + count) of one window.
struct Piece {
  std::int64_t window = 0;
  std::int64_t first = 0;
  std::int64_t count = 0;
};

template <typename Compute>
void for_each_piece(const Call& call, Compute compute) {
  const std::int64_t most = dropped_heads(call.window.sequence, call.heads);
  for (std::int64_t w = 0; w < call.window.batch; ++w) {
    for (std::int64_t h = 0; h < call.heads; h += most)
      compute(Piece{w, h, std::min(most, call.heads - h)});
  }
}

// (heads of the piece, sequence, head_dim): a view.
at::Tensor piece_of(const at::Tensor& rows, const Call& call, const Piece& piece) {
  return as_heads(rows, call.window, call.heads)[piece.window].narrow(0, piece.first, piece.count);
}

at::Tensor wide_piece_of(const at::Tensor& rows, const Call& call, const Piece& piece) {
  return piece_of(rows, call, piece).to(at::kFloat);
}

// Minus infinity where a token of that row does not see that column's.
at::Tensor unseen(const Call& call, const Piece& piece, const at::TensorOptions& wide) {
  const std::int64_t sequence = call.window.sequence;
  if (call.documents.defined()) {
    return document_mask(call.documents.narrow(0, piece.window * sequence, sequence), {}, call.sees,
                         wide);
  }
  return at::full({sequence, sequence}, -std::numeric_limits<float>::infinity(), wide).triu_(1);
}

at::Tensor scores_of(const at::Tensor& query, const at::Tensor& key, const Call& call,
                     const Piece& piece) {
  at::Tensor scores = query.matmul(key.transpose(1, 2));
  scores.mul_(1 / std::sqrt(static_cast<double>(query.size(2))));
  if (call.sees == Sees::back || call.documents.defined())
    scores.add_(unseen(call, piece, scores.options()));
  return scores;
}

// 0 or 1 / (1 - share) for each weight of the piece.
at::Tensor factors_of(const Call& call, const Piece& piece) {
  const std::int64_t sequence = call.window.sequence;
  const std::int64_t scores = sequence * sequence;
  return Dropout(call.drop.keys)
      .stays({piece.window, 1, piece.first * scores, piece.count * scores}, call.drop.place)
      .view({piece.count, sequence, sequence})
      .to(at::kFloat)
      .mul_(1 / (1 - call.drop.place.share));
}

struct DroppedAttention : torch::autograd::Function<DroppedAttention> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& query,
                            const at::Tensor& key, const at::Tensor& value, const Call& call) {
    const at::Tensor mixed =
        at::empty({query.size(0), query.size(1)}, query.options());  // of a view, too: its own
    const at::Tensor log_sums = at::empty({call.window.batch, call.heads, call.window.sequence},
                                          query.options().dtype(at::kFloat));
    for_each_piece(call, [&](const Piece& piece) {
      const at::Tensor scores = scores_of(wide_piece_of(query, call, piece),
                                          wide_piece_of(key, call, piece), call, piece);
      const at::Tensor sums = scores.logsumexp({-1}, /*keepdim=*/true);
      const at::Tensor weights = (scores - sums).exp_().mul_(factors_of(call, piece));
      piece_of(mixed, call, piece).copy_(weights.matmul(wide_piece_of(value, call, piece)));
      log_sums[piece.window].narrow(0, piece.first, piece.count).copy_(sums.squeeze(-1));
    });
    context->save_for_backward({query, key, value, mixed, log_sums});
    call.keep(context);
    return mixed;
  }

  // With the weights W = softmax(S), their factors F, and O = (W F) V: the gradient of W is
  // G = (dO V') F, that of S is W (G - rowsum(G W)), and rowsum(G W) = rowsum(dO O).
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &query = saved[0], &key = saved[1], &value = saved[2], &mixed = saved[3],
                     &log_sums = saved[4];
    const Call call = Call::kept_in(context);
    const at::Tensor of_query = at::empty(query.sizes(), query.options());
    const at::Tensor of_key = at::empty(key.sizes(), key.options());
    const at::Tensor of_value = at::empty(value.sizes(), value.options());
    for_each_piece(call, [&](const Piece& piece) {
      const at::Tensor q = wide_piece_of(query, call, piece);
      const at::Tensor k = wide_piece_of(key, call, piece);
      const at::Tensor gradient = wide_piece_of(gradients[0], call, piece);
      const at::Tensor sums =
          log_sums[piece.window].narrow(0, piece.first, piece.count).unsqueeze(-1);
      const at::Tensor weights = scores_of(q, k, call, piece).sub_(sums).exp_();
      const at::Tensor factors = factors_of(call, piece);
      piece_of(of_value, call, piece).copy_((weights * factors).transpose(1, 2).matmul(gradient));
      const at::Tensor row_sums =
          (gradient * wide_piece_of(mixed, call, piece)).sum({-1}, /*keepdim=*/true);
      const at::Tensor of_scores =
          gradient.matmul(wide_piece_of(value, call, piece).transpose(1, 2))
              .mul_(factors)
              .sub_(row_sums)
              .mul_(weights)
              .mul_(1 / std::sqrt(static_cast<double>(q.size(2))));
      piece_of(of_query, call, piece).copy_(of_scores.matmul(k));
      piece_of(of_key, call, piece).copy_(of_scores.transpose(1, 2).matmul(q));
    });
    return {of_query, of_key, of_value, {}};
  }
};

}  // namespace

at::Tensor dropped_attention(const at::Tensor& query, const at::Tensor& key,
                             const at::Tensor& value, WindowShape window, std::int64_t heads,
                             Sees sees, const at::Tensor& documents, const Dropout& dropout,
                             const DropPlace& place) {
  return DroppedAttention::apply(query, key, value,
                                 Call{window, heads, sees, documents, {dropout.keys(), place}});
}

}  // namespace sluice::model
