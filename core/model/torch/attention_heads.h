#pragma once
// The rows of a batch's windows as heads, and back.
//
// Thread contract: free functions.

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "core/model/window_shape.h"

namespace sluice::model {

// (windows, heads, sequence, hidden / heads) of rows, and back.
inline at::Tensor as_heads(const at::Tensor& rows, WindowShape window, std::int64_t heads) {
  return rows.view({window.batch, window.sequence, heads, rows.size(1) / heads}).transpose(1, 2);
}

inline at::Tensor as_rows(const at::Tensor& of_heads, WindowShape window) {
  return of_heads.transpose(1, 2).reshape({window.tokens(), of_heads.size(1) * of_heads.size(3)});
}

}  // namespace sluice::model
