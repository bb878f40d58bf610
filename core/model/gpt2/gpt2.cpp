#include "core/model/gpt2/gpt2.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/addcmul.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>

#include "core/model/torch/attention.h"
#include "core/model/torch/products.h"

namespace sluice::model {
namespace {

constexpr double kLayerNormEps = 1e-5;

// Where a block drops values.
enum : std::uint32_t { kDropWeights, kDropAttended, kDropWidened };

// Weight and bias are applied outside layer_norm: its own backward sums their gradients in 16 bits
// (3 % off at 1024 tokens, 8 % at 8192), addcmul's in fp32.
at::Tensor layer_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  return at::addcmul(bias, at::layer_norm(x, {x.size(1)}, {}, {}, kLayerNormEps), weight);
}

// Token rows plus position rows.
at::Tensor embed(const at::Tensor& tokens, const LayerViews& w, WindowShape window,
                 const ModelShape& /*shape*/) {
  const at::Tensor& table = w["wte.weight"];  // [vocabulary, hidden]
  at::Tensor x = table.index_select(0, tokens);
  x.view({window.batch, window.sequence, table.size(1)})
      .add_(w["wpe.weight"].narrow(0, 0, window.sequence));
  return x;
}

void embed_backward(const at::Tensor& gradient, const LayerViews& w, WindowShape window,
                    GradientWriter& writer) {
  const at::Tensor positions = writer.next(w["wpe.weight"].sizes());  // [sequence, hidden]
  const at::Tensor used = positions.narrow(0, 0, window.sequence);
  const at::Tensor sum = gradient.view({window.batch, window.sequence, gradient.size(1)})
                             .sum({0}, /*keepdim=*/false, at::kFloat);
  if (writer.adds()) {
    used.add_(sum);
  } else {
    positions.zero_();
    used.copy_(sum);
  }
}

at::Tensor attended(const at::Tensor& qkv, const LayerContext& context) {
  const std::int64_t heads = context.shape.heads;
  const DropPlace weights = context.drop_place(context.shape.dropout.attention, kDropWeights);
  if (!context.dropout.drops(weights)) return attention(qkv, context.window, heads);
  const std::vector<at::Tensor> parts = qkv.split(qkv.size(1) / 3, 1);
  return dropped_attention(parts[0], parts[1], parts[2], context.window, heads,
                           /*looks_back_only=*/true, context.dropout, weights);
}

// Weights are [in, out]; c_attn's columns are query, key and value.
at::Tensor block(const at::Tensor& x, const LayerViews& w, const LayerContext& context) {
  const at::Tensor qkv =
      product_plus(w["attn.c_attn.bias"], layer_norm(x, w["ln_1.weight"], w["ln_1.bias"]),
                   w["attn.c_attn.weight"]);
  const at::Tensor mixed = attended(qkv, context);
  const at::Tensor middle =
      x + context.dropped(product_plus(w["attn.c_proj.bias"], mixed, w["attn.c_proj.weight"]),
                          kDropAttended);
  const at::Tensor widened = at::gelu(
      product_plus(w["mlp.c_fc.bias"], layer_norm(middle, w["ln_2.weight"], w["ln_2.bias"]),
                   w["mlp.c_fc.weight"]),
      "tanh");
  return middle +
         context.dropped(product_plus(w["mlp.c_proj.bias"], widened, w["mlp.c_proj.weight"]),
                         kDropWidened);
}

at::Tensor head(const at::Tensor& x, const LayerViews& w, const ModelShape& /*shape*/) {
  return layer_norm(x, w["ln_f.weight"], w["ln_f.bias"]);
}

}  // namespace

const TorchArchitecture kTorchGpt2 = {.token_table = "wte.weight",
                                      .embed = embed,
                                      .embed_backward = embed_backward,
                                      .block = block,
                                      .head = head};

}  // namespace sluice::model
