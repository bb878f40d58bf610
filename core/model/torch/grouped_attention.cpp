// Attention whose heads of keys and values each serve several heads of queries. Where a processor
// computes, libtorch repeats them, and keeps what it has repeated; here a window's groups are its
// batch, and the keys of a group a view for each of its heads. A sliding window is a mask.

#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <torch/csrc/autograd/custom_function.h>

#include <limits>
#include <optional>

#include "core/model/torch/attention.h"
#include "core/model/torch/attention_heads.h"
#include "core/model/torch/devices.h"
#include "core/model/torch/document_mask.h"
#include "core/model/torch/products.h"

namespace sluice::model {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct Groups {
  WindowShape window;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  bool widens = false;

  std::int64_t group() const { return heads / kv_heads; }

  at::Tensor wide(const at::Tensor& rows) const { return widens ? rows.to(at::kFloat) : rows; }
  at::Tensor rows_of(const at::Tensor& rows, std::int64_t index) const {
    return rows.narrow(0, index * window.sequence, window.sequence);
  }
  // (kv_heads, group, sequence, head_dim) of a window's queries, and of what is like them.
  at::Tensor queries(const at::Tensor& rows, std::int64_t index) const {
    return wide(rows_of(rows, index))
        .view({window.sequence, kv_heads, group(), rows.size(1) / heads})
        .permute({1, 2, 0, 3});
  }
  // The same of its keys or values, which heads of a group share.
  at::Tensor keys(const at::Tensor& rows, std::int64_t index) const {
    const std::int64_t head_dim = rows.size(1) / kv_heads;
    return wide(rows_of(rows, index))
        .view({window.sequence, kv_heads, 1, head_dim})
        .permute({1, 2, 0, 3})
        .expand({kv_heads, group(), window.sequence, head_dim});
  }
  // Into a window's rows.
  void put_queries(const at::Tensor& of_heads, const at::Tensor& rows, std::int64_t index) const {
    rows_of(rows, index)
        .view({window.sequence, kv_heads, group(), rows.size(1) / heads})
        .copy_(of_heads.permute({2, 0, 1, 3}));
  }
  void put_keys(const at::Tensor& of_heads, const at::Tensor& rows, std::int64_t index) const {
    rows_of(rows, index)
        .view({window.sequence, kv_heads, rows.size(1) / kv_heads})
        .copy_(of_heads.sum({1}, /*keepdim=*/false, at::kFloat).permute({1, 0, 2}));
  }
};

// Autograd asks each tensor that a function is given where it lies, and this one may not be there.
struct Mask {
  at::Tensor tensor;
  Sees sees = Sees::back;
  at::Tensor documents;
  bool is_given() const { return tensor.defined() || documents.defined(); }
  bool is_causal() const { return !is_given() && sees == Sees::back; }
  // The mask of window number `index`.
  std::optional<at::Tensor> given(std::int64_t index, std::int64_t sequence,
                                  const at::Tensor& like) const {
    if (!documents.defined()) return is_given() ? std::optional(tensor) : std::nullopt;
    return document_mask(documents.narrow(0, index * sequence, sequence), tensor, sees,
                         like.options());
  }
};

struct GroupedAttention : torch::autograd::Function<GroupedAttention> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& query,
                            const at::Tensor& key, const at::Tensor& value, const Mask& mask,
                            std::int64_t batch, std::int64_t sequence, std::int64_t heads,
                            std::int64_t kv_heads) {
    const Groups groups{
        {batch, sequence}, heads, kv_heads, widens_products(query.scalar_type(), query.device())};
    const at::Tensor mixed = at::empty_like(query);
    const at::Tensor log_sums =
        at::empty({batch, kv_heads, groups.group(), sequence}, query.options().dtype(at::kFloat));
    for (std::int64_t i = 0; i < batch; ++i) {
      const auto [out, sums] = at::_scaled_dot_product_flash_attention_for_cpu(
          groups.queries(query, i), groups.keys(key, i), groups.keys(value, i), 0.0,
          mask.is_causal(), mask.given(i, sequence, query));
      groups.put_queries(out, mixed, i);
      log_sums[i].copy_(sums);
    }
    context->save_for_backward({query, key, value, mixed, log_sums});
    // Both are the model's, of no layer.
    if (mask.tensor.defined()) context->saved_data["mask"] = mask.tensor;
    if (mask.documents.defined()) context->saved_data["documents"] = mask.documents;
    context->saved_data["sees_all"] = mask.sees == Sees::all;
    context->saved_data["sequence"] = sequence;
    context->saved_data["kv_heads"] = kv_heads;
    return mixed;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &query = saved[0], &key = saved[1], &value = saved[2], &mixed = saved[3],
                     &log_sums = saved[4];
    const Groups groups{{log_sums.size(0), context->saved_data["sequence"].toInt()},
                        log_sums.size(1) * log_sums.size(2),
                        context->saved_data["kv_heads"].toInt(),
                        widens_products(query.scalar_type(), query.device())};
    const at::Tensor of_query = at::empty_like(query);
    const at::Tensor of_key = at::empty_like(key);
    const at::Tensor of_value = at::empty_like(value);
    const at::Tensor gradient = gradients[0].contiguous();
    const auto kept = [&](const char* name) {
      const c10::IValue& found = context->saved_data[name];
      return found.isTensor() ? found.toTensor() : at::Tensor();
    };
    const Mask mask{kept("mask"), context->saved_data["sees_all"].toBool() ? Sees::all : Sees::back,
                    kept("documents")};
    for (std::int64_t i = 0; i < groups.window.batch; ++i) {
      const auto [queries, keys, values] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
          groups.queries(gradient, i), groups.queries(query, i), groups.keys(key, i),
          groups.keys(value, i), groups.queries(mixed, i), log_sums[i], 0.0, mask.is_causal(),
          mask.given(i, groups.window.sequence, query));
      groups.put_queries(queries, of_query, i);
      groups.put_keys(keys, of_key, i);
      groups.put_keys(values, of_value, i);
    }
    return {of_query, of_key, of_value, {}, {}, {}, {}, {}};
  }
};

}  // namespace

at::Tensor grouped_attention(const at::Tensor& query, const at::Tensor& key,
                             const at::Tensor& value, WindowShape window, std::int64_t heads,
                             std::int64_t kv_heads, const at::Tensor& whole_mask, Sees sees,
                             const at::Tensor& documents) {
  Mask mask{{}, sees, documents};
  if (whole_mask.defined())
    mask.tensor = whole_mask.narrow(0, 0, window.sequence).narrow(1, 0, window.sequence);
  if (computes_on_processor(query.device())) {
    return GroupedAttention::apply(query, key, value, mask, window.batch, window.sequence, heads,
                                   kv_heads);
  }
  if (documents.defined()) {
    return recomputed_attention(query, key, value, window, heads, kv_heads, mask.tensor, sees,
                                documents);
  }
  const at::Tensor mixed = at::scaled_dot_product_attention(
      as_heads(query, window, heads), as_heads(key, window, kv_heads),
      as_heads(value, window, kv_heads), mask.given(0, window.sequence, query), 0.0,
      mask.is_causal(), std::nullopt,
      /*enable_gqa=*/kv_heads != heads);
  return as_rows(mixed, window);
}

at::Tensor window_mask(std::int64_t sequence, std::int64_t tokens, const at::TensorOptions& like) {
  const at::Tensor all = at::full({sequence, sequence}, 1, at::TensorOptions().dtype(at::kBool));
  const at::Tensor seen = all.tril().logical_and(all.triu(1 - tokens));
  // Made in host memory and copied, so that no stream of the device has to wait for another.
  const at::Tensor mask =
      at::full({sequence, sequence}, 0, at::TensorOptions().dtype(at::kFloat))
          .masked_fill_(seen.logical_not(), -std::numeric_limits<float>::infinity());
  return mask.to(computes_on_processor(like.device()) ? like.dtype(at::kFloat) : like);
}

}  // namespace sluice::model
