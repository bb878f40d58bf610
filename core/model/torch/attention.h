#pragma once
// Attention of the windows of a batch, causal where nothing else is said.
//
// Where 16-bit products are widened (products.h), so is attention, a few windows at a time:
// libtorch's kernel is slow in backward then (docs/decisions.md, 47). Kept for backward are the
// 16-bit tensors that are kept anyway and a number a row.
//
// Thread contract: the compute thread.

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "core/model/window_shape.h"

namespace sluice::model {

// qkv (tokens, 3 hidden) to (tokens, hidden), both of one type; with gradients where watched.
// `documents` as below; with them grouped_attention() computes it.
at::Tensor attention(const at::Tensor& qkv, WindowShape window, std::int64_t heads,
                     const at::Tensor& documents = {});

enum class Sees : std::uint8_t {
  back,  // itself and what is before it, or what a mask says
  all,   // all of its window
};

// query (tokens, heads x head_dim), key and value (tokens, kv_heads x head_dim): each head of keys
// and values serves heads / kv_heads queries. The result is as `query`. `mask`: window_mask() where
// a token does not look back at all of its window's; not defined: it does. With Sees::all there is
// no mask. `documents` (tokens): a token sees those of its window that have its number alone
// (document_mask.h); not defined: all are of one document.
at::Tensor grouped_attention(const at::Tensor& query, const at::Tensor& key,
                             const at::Tensor& value, WindowShape window, std::int64_t heads,
                             std::int64_t kv_heads, const at::Tensor& mask = {},
                             Sees sees = Sees::back, const at::Tensor& documents = {});

// (sequence, sequence): 0 where a token of that row sees one of that column, itself and the
// `tokens` - 1 before it, and minus infinity elsewhere; of the type in which attention computes
// where `like` lies.
at::Tensor window_mask(std::int64_t sequence, std::int64_t tokens, const at::TensorOptions& like);

// The widened one, on any processor: for tests of it.
at::Tensor widened_attention(const at::Tensor& qkv, WindowShape window, std::int64_t heads);

}  // namespace sluice::model
