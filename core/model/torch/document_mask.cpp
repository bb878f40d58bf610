#include "core/model/torch/document_mask.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include <limits>
#include <vector>

#include "core/model/torch/attention_heads.h"
#include "core/model/torch/autograd.h"
#include "core/model/torch/devices.h"

namespace sluice::model {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The masks' tensors, which autograd is not to look at.
struct Masks {
  at::Tensor window;
  at::Tensor documents;
  Sees sees = Sees::back;
};

struct OneWindow {
  WindowShape window;  // one
  std::int64_t first = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;

  at::Tensor rows(const at::Tensor& all) const { return all.narrow(0, first, window.sequence); }
  at::Tensor mixed(const variable_list& parts, const Masks& masks) const {
    const at::Tensor mask =
        document_mask(rows(masks.documents), masks.window, masks.sees, parts[0].options());
    return as_rows(at::scaled_dot_product_attention(
                       as_heads(parts[0], window, heads), as_heads(parts[1], window, kv_heads),
                       as_heads(parts[2], window, kv_heads), mask, 0.0, /*is_causal=*/false,
                       std::nullopt, /*enable_gqa=*/kv_heads != heads),
                   window);
  }
};

struct RecomputedAttention : torch::autograd::Function<RecomputedAttention> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& query,
                            const at::Tensor& key, const at::Tensor& value, const Masks& masks,
                            std::int64_t sequence, std::int64_t heads, std::int64_t kv_heads) {
    const at::Tensor mixed = at::empty({query.size(0), query.size(1)}, query.options());
    for (std::int64_t first = 0; first < query.size(0); first += sequence) {
      const OneWindow one{{1, sequence}, first, heads, kv_heads};
      one.rows(mixed).copy_(one.mixed({one.rows(query), one.rows(key), one.rows(value)}, masks));
    }
    context->save_for_backward({query, key, value});
    if (masks.window.defined()) context->saved_data["window"] = masks.window;  // of no layer
    context->saved_data["documents"] = masks.documents;
    context->saved_data["sees_all"] = masks.sees == Sees::all;
    context->saved_data["numbers"] = std::vector<std::int64_t>{sequence, heads, kv_heads};
    return mixed;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const c10::IValue& window = context->saved_data["window"];
    const Masks masks{window.isTensor() ? window.toTensor() : at::Tensor(),
                      context->saved_data["documents"].toTensor(),
                      context->saved_data["sees_all"].toBool() ? Sees::all : Sees::back};
    const std::vector<std::int64_t> numbers = context->saved_data["numbers"].toIntVector();
    variable_list found;
    for (const at::Tensor& part : saved)
      found.push_back(at::empty({part.size(0), part.size(1)}, part.options()));
    for (std::int64_t first = 0; first < saved[0].size(0); first += numbers[0]) {
      const OneWindow one{{1, numbers[0]}, first, numbers[1], numbers[2]};
      variable_list parts;
      for (const at::Tensor& part : saved)
        parts.push_back(one.rows(part).detach().set_requires_grad(true));
      const at::AutoGradMode watch(true);
      const variable_list of_parts =
          differentiate(one.mixed(parts, masks), parts, one.rows(gradients[0]));
      const at::NoGradGuard no_grad;
      for (std::size_t i = 0; i < found.size(); ++i) one.rows(found[i]).copy_(of_parts[i]);
    }
    return {found[0], found[1], found[2], {}, {}, {}, {}};
  }
};

}  // namespace

at::Tensor document_mask(const at::Tensor& documents, const at::Tensor& mask, Sees sees,
                         const at::TensorOptions& like) {
  const std::int64_t sequence = documents.size(0);
  const at::TensorOptions options =
      computes_on_processor(like.device()) ? like.dtype(at::kFloat) : like;
  const at::Tensor made = mask.defined()
                              ? mask.narrow(0, 0, sequence).narrow(1, 0, sequence).clone()
                              : at::zeros({sequence, sequence}, options);
  at::Tensor seen = documents.unsqueeze(1).eq(documents.unsqueeze(0));
  if (!mask.defined() && sees == Sees::back) seen.tril_();
  return made.masked_fill_(seen.logical_not_(), -std::numeric_limits<float>::infinity());
}

at::Tensor recomputed_attention(const at::Tensor& query, const at::Tensor& key,
                                const at::Tensor& value, WindowShape window, std::int64_t heads,
                                std::int64_t kv_heads, const at::Tensor& mask, Sees sees,
                                const at::Tensor& documents) {
  return RecomputedAttention::apply(query, key, value, Masks{mask, documents, sees},
                                    window.sequence, heads, kv_heads);
}

}  // namespace sluice::model
