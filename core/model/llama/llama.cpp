#include "core/model/llama/llama.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/silu.h>

#include <string>

#include "core/model/torch/attention.h"
#include "core/model/torch/products.h"
#include "core/model/torch/rms_norm.h"
#include "core/model/torch/rotary.h"

namespace sluice::model {
namespace {

enum Constant : std::uint8_t { kCosine, kSine };

std::vector<at::Tensor> constants(const ModelShape& shape, std::int64_t sequence,
                                  const at::TensorOptions& like) {
  const Angles angles = rotary_angles(sequence, shape.head_width(), shape.rope_theta, like);
  return {angles.cosine, angles.sine};
}

at::Tensor embed(const at::Tensor& tokens, const LayerViews& w, WindowShape /*window*/) {
  return w["embed_tokens.weight"].index_select(0, tokens);
}

// Weights are [out, in].
at::Tensor linear(const at::Tensor& x, const LayerViews& w, const std::string& name) {
  return watched_product(x, w[name + ".weight"].t());
}

at::Tensor with_bias(const at::Tensor& x, const LayerViews& w, const std::string& name,
                     const ModelShape& shape) {
  if (!shape.qkv_bias) return linear(x, w, name);
  return product_plus(w[name + ".bias"], x, w[name + ".weight"].t());
}

// Queries or keys, each head through its norm where there is one, and turned.
at::Tensor turned_heads(const at::Tensor& x, const LayerViews& w, const std::string& part,
                        const LayerContext& context) {
  const ModelShape& shape = context.shape;
  at::Tensor rows = with_bias(x, w, "self_attn." + part + "_proj", shape);
  if (shape.qk_norm) {
    const at::Tensor of_heads = rows.view({rows.size(0), -1, shape.head_width()});
    rows = rms_norm(of_heads, w["self_attn." + part + "_norm.weight"], shape.norm_eps)
               .view(rows.sizes());
  }
  return turned(rows, {context.constants[kCosine], context.constants[kSine]}, context.window);
}

at::Tensor attended(const at::Tensor& x, const LayerViews& w, const LayerContext& context) {
  const at::Tensor query = turned_heads(x, w, "q", context);
  const at::Tensor key = turned_heads(x, w, "k", context);
  const at::Tensor value = with_bias(x, w, "self_attn.v_proj", context.shape);
  return linear(grouped_attention(query, key, value, context.window, context.shape.heads,
                                  context.shape.kv_heads),
                w, "self_attn.o_proj");
}

at::Tensor block(const at::Tensor& x, const LayerViews& w, const LayerContext& context) {
  const double eps = context.shape.norm_eps;
  const at::Tensor middle = x + attended(rms_norm(x, w["input_layernorm.weight"], eps), w, context);
  const at::Tensor inner = rms_norm(middle, w["post_attention_layernorm.weight"], eps);
  const at::Tensor gate = at::silu(linear(inner, w, "mlp.gate_proj"));
  return middle + linear(gate * linear(inner, w, "mlp.up_proj"), w, "mlp.down_proj");
}

at::Tensor head(const at::Tensor& x, const LayerViews& w, const ModelShape& shape) {
  return rms_norm(x, w["norm.weight"], shape.norm_eps);
}

}  // namespace

const TorchArchitecture kTorchLlama = {.token_table = "embed_tokens.weight",
                                       .output_table = "lm_head.weight",
                                       .constants = constants,
                                       .embed = embed,
                                       .block = block,
                                       .head = head};

}  // namespace sluice::model
