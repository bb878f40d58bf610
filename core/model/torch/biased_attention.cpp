#include "core/model/torch/biased_attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/baddbmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include <limits>
#include <optional>

#include "core/model/torch/check.h"
#include "core/model/torch/kept_drop.h"

namespace sluice::model {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Autograd asks each tensor that a function is given where it lies, and this one may not be there.
struct Pairs {
  at::Tensor biases;
};

// (heads, length, head_dim) in fp32 of a window's rows.
at::Tensor heads_of(const at::Tensor& rows, std::int64_t index, std::int64_t length,
                    std::int64_t heads) {
  return rows.narrow(0, index * length, length)
      .to(at::kFloat)
      .view({length, heads, rows.size(1) / heads})
      .transpose(0, 1);
}

// Back into a window's rows.
void put_heads(const at::Tensor& of_heads, const at::Tensor& rows, std::int64_t index) {
  const std::int64_t length = of_heads.size(1);
  rows.narrow(0, index * length, length)
      .view({length, of_heads.size(0), of_heads.size(2)})
      .copy_(of_heads.transpose(0, 1));
}

// `shares` (heads, queries, keys) of a window as they are after dropout; without it, themselves.
at::Tensor dropped(const at::Tensor& shares, const KeptDrop& drop, std::int64_t window) {
  if (!Dropout(drop.keys).drops(drop.place)) return shares;
  const at::Tensor stays = Dropout(drop.keys).stays({window, 1, 0, shares.numel()}, drop.place);
  return (shares * stays.view(shares.sizes())).mul_(1 / (1 - drop.place.share));
}

at::Tensor scores_of(const at::Tensor& query, const at::Tensor& key, const at::Tensor& pairs) {
  if (!pairs.defined()) return at::bmm(query, key.transpose(1, 2));
  const at::Tensor of_window = pairs.narrow(1, 0, query.size(1)).narrow(2, 0, key.size(1));
  return at::baddbmm(of_window, query, key.transpose(1, 2));
}

// The sums of gradients (heads, s, s) over pairs of one distance, as PositionBias has them. In rows
// one longer than they are, each row begins a column later, so that a column is one distance.
at::Tensor sums_by_distance(const at::Tensor& of_pairs, std::int64_t columns) {
  const std::int64_t heads = of_pairs.size(0), length = of_pairs.size(1);
  const std::int64_t width = 2 * length - 1;
  const at::Tensor sums = at::constant_pad_nd(of_pairs.flip({1}), {0, length})
                              .view({heads, length * 2 * length})
                              .narrow(1, 0, length * width)
                              .view({heads, length, width})
                              .sum({1});
  const std::int64_t beside = (columns - width) / 2;
  return at::constant_pad_nd(sums, {beside, beside});
}

struct BiasedAttention : torch::autograd::Function<BiasedAttention> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& query,
                            const at::Tensor& key, const at::Tensor& value,
                            const std::optional<at::Tensor>& by_distance, const Pairs& pairs,
                            const KeptDrop& drop, std::int64_t batch, std::int64_t heads) {
    const std::int64_t queries = query.size(0) / batch, keys = key.size(0) / batch;
    const at::Tensor mixed = at::empty_like(query);
    const at::Tensor log_sums =
        at::empty({batch, heads, queries}, query.options().dtype(at::kFloat));
    for (std::int64_t i = 0; i < batch; ++i) {
      at::Tensor scores = scores_of(heads_of(query, i, queries, heads),
                                    heads_of(key, i, keys, heads), pairs.biases);
      const at::Tensor sums = at::logsumexp(scores, at::IntArrayRef{-1}, /*keepdim=*/true);
      log_sums[i].copy_(sums.squeeze(-1));
      scores.sub_(sums).exp_();
      put_heads(at::bmm(dropped(scores, drop, i), heads_of(value, i, keys, heads)), mixed, i);
    }
    context->save_for_backward({query, key, value, mixed, log_sums});
    if (by_distance) context->saved_data["pairs"] = pairs.biases;  // the model's, of no layer
    drop.keep(context);
    context->saved_data["columns"] = by_distance ? by_distance->size(1) : std::int64_t{0};
    return mixed;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &query = saved[0], &key = saved[1], &value = saved[2], &mixed = saved[3],
                     &log_sums = saved[4];
    const std::int64_t batch = log_sums.size(0), heads = log_sums.size(1),
                       queries = log_sums.size(2), keys = key.size(0) / batch;
    const std::int64_t columns = context->saved_data["columns"].toInt();
    const at::Tensor pairs = columns > 0 ? context->saved_data["pairs"].toTensor() : at::Tensor();
    const at::Tensor of_query = at::empty_like(query), of_key = at::empty_like(key),
                     of_value = at::empty_like(value);
    const KeptDrop drop = KeptDrop::kept_in(context);
    at::Tensor of_pairs;
    if (columns > 0) of_pairs = at::zeros({heads, queries, keys}, log_sums.options());
    for (std::int64_t i = 0; i < batch; ++i) {
      const at::Tensor q = heads_of(query, i, queries, heads), k = heads_of(key, i, keys, heads),
                       v = heads_of(value, i, keys, heads),
                       gradient = heads_of(gradients[0], i, queries, heads);
      const at::Tensor shares = scores_of(q, k, pairs).sub_(log_sums[i].unsqueeze(-1)).exp_();
      put_heads(at::bmm(dropped(shares, drop, i).transpose(1, 2), gradient), of_value, i);
      const at::Tensor mean =
          (gradient * heads_of(mixed, i, queries, heads)).sum({-1}, /*keepdim=*/true);
      const at::Tensor of_scores =
          dropped(at::bmm(gradient, v.transpose(1, 2)), drop, i).sub_(mean).mul_(shares);
      put_heads(at::bmm(of_scores, k), of_query, i);
      put_heads(at::bmm(of_scores.transpose(1, 2), q), of_key, i);
      if (columns > 0) of_pairs.add_(of_scores);
    }
    return {of_query, of_key,
            of_value, columns > 0 ? sums_by_distance(of_pairs, columns) : at::Tensor(),
            {},       {},
            {},       {}};
  }
};

}  // namespace

void fill_pairs(const PositionBias& bias, BiasSees sees) {
  const at::NoGradGuard no_grad;
  const std::int64_t heads = bias.of_pairs.size(0), length = bias.of_pairs.size(1);
  const std::int64_t columns = 2 * length - 1;
  // The last query first: its row begins in the first column, and each before it one further on.
  const at::Tensor rows =
      bias.by_distance.detach().as_strided({heads, length, length}, {columns, 1, 1});
  bias.of_pairs.copy_(rows.flip({1}));
  if (sees == BiasSees::all) return;
  const at::Tensor ahead =
      at::full({length, length}, -std::numeric_limits<float>::infinity(), bias.of_pairs.options())
          .triu(1);
  bias.of_pairs.add_(ahead);
}

at::Tensor biased_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                            const AttentionWindows& windows, const PositionBias* bias,
                            const Dropout& dropout, const DropPlace& place) {
  CHECK_EQ(query.size(0), windows.batch * windows.queries);
  CHECK_EQ(key.size(0), windows.batch * windows.keys);
  return BiasedAttention::apply(query, key, value,
                                bias != nullptr ? std::optional(bias->by_distance) : std::nullopt,
                                Pairs{bias != nullptr ? bias->of_pairs : at::Tensor()},
                                KeptDrop{dropout.keys(), place}, windows.batch, windows.heads);
}

}  // namespace sluice::model
