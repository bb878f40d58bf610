#pragma once
// The masks of windows with several documents, of which a token sees its own alone. One is made for
// the window that attention is at, forward and backward, and kept for nothing: whatever the batch
// is, masks take document_mask_bytes() at most.
//
// Thread contract: the compute thread.

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "core/model/torch/attention.h"

namespace sluice::model {

// (sequence, sequence) of one window: 0 where a token of that row sees one of that column, and
// minus infinity elsewhere. `documents` (sequence) is the same number for tokens of one document.
// `mask`: window_mask(), or not defined; `sees` counts where it is not. The result is of the type
// in which attention computes where `like` lies.
at::Tensor document_mask(const at::Tensor& documents, const at::Tensor& mask, Sees sees,
                         const at::TensorOptions& like);

// attention.h's grouped_attention() for a device whose kernels keep the mask that they are given: a
// window at a time, and computed again in backward. On any device: for tests of it.
at::Tensor recomputed_attention(const at::Tensor& query, const at::Tensor& key,
                                const at::Tensor& value, WindowShape window, std::int64_t heads,
                                std::int64_t kv_heads, const at::Tensor& mask, Sees sees,
                                const at::Tensor& documents);

}  // namespace sluice::model
