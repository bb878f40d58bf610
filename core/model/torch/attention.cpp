#include "core/model/torch/attention.h"

#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <array>
#include <vector>

#include "core/model/torch/attention_heads.h"
#include "core/model/torch/products.h"
#include "core/model/widened_pieces.h"

namespace sluice::model {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr double kDropout = 0.0;
constexpr bool kIsCausal = true;

// Views of the three, so that nothing is copied on the way in.
std::vector<at::Tensor> query_key_value(const at::Tensor& qkv, WindowShape window,
                                        std::int64_t heads) {
  // split, whose backward is one concatenation.
  std::vector<at::Tensor> parts = qkv.split(qkv.size(1) / 3, 1);
  for (at::Tensor& part : parts) part = as_heads(part, window, heads);
  return parts;
}

// Calls `compute` with the first window of each piece, and its shape.
template <typename Compute>
void for_each_piece(WindowShape window, std::int64_t hidden, Compute compute) {
  const std::int64_t windows = widened_windows(window, hidden);
  for (std::int64_t first = 0; first < window.batch; first += windows)
    compute(first, WindowShape{std::min(windows, window.batch - first), window.sequence});
}

at::Tensor rows_of(const at::Tensor& rows, std::int64_t first_window, WindowShape piece) {
  return rows.narrow(0, first_window * piece.sequence, piece.tokens());
}

struct WidenedAttention : torch::autograd::Function<WidenedAttention> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& qkv, std::int64_t batch,
                            std::int64_t sequence, std::int64_t heads) {
    const WindowShape window{batch, sequence};
    const std::int64_t hidden = qkv.size(1) / 3;
    at::Tensor mixed = at::empty({window.tokens(), hidden}, qkv.options());
    at::Tensor log_sums = at::empty({batch, heads, sequence}, qkv.options().dtype(at::kFloat));
    for_each_piece(window, hidden, [&](std::int64_t first, WindowShape piece) {
      const auto wide = query_key_value(rows_of(qkv, first, piece).to(at::kFloat), piece, heads);
      const auto [out, sums] = at::_scaled_dot_product_flash_attention_for_cpu(
          wide[0], wide[1], wide[2], kDropout, kIsCausal);
      rows_of(mixed, first, piece).copy_(as_rows(out, piece));
      log_sums.narrow(0, first, piece.batch).copy_(sums);
    });
    context->save_for_backward({qkv, mixed, log_sums});
    context->saved_data["sequence"] = sequence;
    return mixed;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &qkv = saved[0], &mixed = saved[1], &log_sums = saved[2];
    const std::int64_t heads = log_sums.size(1);
    const WindowShape window{log_sums.size(0), context->saved_data["sequence"].toInt()};
    const at::Tensor found = at::empty_like(qkv);
    for_each_piece(window, mixed.size(1), [&](std::int64_t first, WindowShape piece) {
      const auto heads_of = [&](const at::Tensor& rows) {
        return as_heads(rows_of(rows, first, piece).to(at::kFloat), piece, heads);
      };
      const auto wide = query_key_value(rows_of(qkv, first, piece).to(at::kFloat), piece, heads);
      const auto [of_query, of_key, of_value] =
          at::_scaled_dot_product_flash_attention_for_cpu_backward(
              heads_of(gradients[0]), wide[0], wide[1], wide[2], heads_of(mixed),
              log_sums.narrow(0, first, piece.batch), kDropout, kIsCausal);
      const auto into = query_key_value(rows_of(found, first, piece), piece, heads);
      into[0].copy_(of_query);
      into[1].copy_(of_key);
      into[2].copy_(of_value);
    });
    return {found, {}, {}, {}};
  }
};

}  // namespace

at::Tensor widened_attention(const at::Tensor& qkv, WindowShape window, std::int64_t heads) {
  return WidenedAttention::apply(qkv, window.batch, window.sequence, heads);
}

at::Tensor attention(const at::Tensor& qkv, WindowShape window, std::int64_t heads,
                     const at::Tensor& documents) {
  if (documents.defined()) {
    const std::vector<at::Tensor> rows = qkv.split(qkv.size(1) / 3, 1);
    return grouped_attention(rows[0], rows[1], rows[2], window, heads, heads, {}, Sees::back,
                             documents);
  }
  if (widens_products(qkv.scalar_type(), qkv.device()))
    return widened_attention(qkv, window, heads);
  const auto parts = query_key_value(qkv, window, heads);
  const at::Tensor mixed = at::scaled_dot_product_attention(parts[0], parts[1], parts[2],
                                                            std::nullopt, kDropout, kIsCausal);
  return as_rows(mixed, window);
}

}  // namespace sluice::model
