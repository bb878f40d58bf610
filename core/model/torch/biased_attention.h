#pragma once
// Attention with a bias on its scores by the distance of two tokens, and of queries to keys of
// another window: T5's. Scores are not scaled. In fp32, one window at a time; kept for backward are
// query, key, value, the result, and a number a row and head. The same on every device, and no
// order of sums hangs on threads or on chance.
//
// Thread contract: the compute thread.

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "core/model/torch/dropout.h"

namespace sluice::model {

// Biases of the tokens of windows of at most n: what a key d tokens behind its query has, for each
// head, stands in column n - 1 + d.
struct PositionBias {
  at::Tensor by_distance;  // (heads, 2 n - 1), fp32, with gradients where watched
  at::Tensor of_pairs;     // (heads, n, n), fp32: of queries and keys; minus infinity: not seen
};

// Fills `of_pairs`; with `looks_back`, a key behind its query is not seen.
enum class BiasSees : std::uint8_t { back, all };
void fill_pairs(const PositionBias& bias, BiasSees sees);

struct AttentionWindows {
  std::int64_t batch = 0;
  std::int64_t queries = 0;  // tokens of a window
  std::int64_t keys = 0;
  std::int64_t heads = 0;
};

// query (batch x queries, heads x head_dim), key and value (batch x keys, heads x head_dim); the
// result is as `query`. `bias` null: there is none, and all is seen; else there are as many keys as
// queries. Weights are dropped at `place`.
at::Tensor biased_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                            const AttentionWindows& windows, const PositionBias* bias,
                            const Dropout& dropout, const DropPlace& place);

}  // namespace sluice::model
