#include "core/model/llama/llama.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/silu.h>

#include <string>

#include "core/model/torch/attention.h"
#include "core/model/torch/linear.h"
#include "core/model/torch/rms_norm.h"
#include "core/model/torch/rotary.h"

namespace sluice::model {
namespace {

enum Constant : std::uint8_t { kCosine, kSine, kWindowMask };

std::vector<at::Tensor> constants(const ModelShape& shape, std::int64_t sequence,
                                  const at::TensorOptions& like) {
  const Angles angles = rotary_angles(sequence, shape.head_width(), shape.rotary, like);
  std::vector<at::Tensor> made = {angles.cosine, angles.sine};
  if (shape.window.limits(shape.layers - 1, sequence))
    made.push_back(window_mask(sequence, shape.window.tokens, like));
  return made;
}

at::Tensor embed(const at::Tensor& tokens, const LayerViews& w, const TokenPlaces& /*places*/,
                 const ModelShape& /*shape*/) {
  return w["embed_tokens.weight"].index_select(0, tokens);
}

// Queries or keys, each head through its norm where there is one, and turned.
at::Tensor turned_heads(const at::Tensor& x, const LayerViews& w, const std::string& part,
                        const LayerContext& context) {
  const ModelShape& shape = context.shape;
  at::Tensor rows = linear(x, w, "self_attn." + part + "_proj");
  if (shape.qk_norm) {
    const at::Tensor of_heads = rows.view({rows.size(0), -1, shape.head_width()});
    rows = rms_norm(of_heads, w["self_attn." + part + "_norm.weight"], shape.norm_eps)
               .view(rows.sizes());
  }
  return turned(rows, {context.constants[kCosine], context.constants[kSine]}, context.window);
}

// Not defined: the block looks back at all.
at::Tensor mask_of(const LayerContext& context) {
  return context.shape.window.limits(context.block, context.window.sequence)
             ? context.constants[kWindowMask]
             : at::Tensor();
}

at::Tensor attended(const at::Tensor& x, const LayerViews& w, const LayerContext& context) {
  const ModelShape& shape = context.shape;
  const at::Tensor query = turned_heads(x, w, "q", context);
  const at::Tensor key = turned_heads(x, w, "k", context);
  const at::Tensor value = linear(x, w, "self_attn.v_proj");
  const at::Tensor mixed =
      grouped_attention(query, key, value, context.window, shape.heads, shape.kv_heads,
                        mask_of(context), Sees::back, context.documents);
  return linear(mixed, w, "self_attn.o_proj");
}

at::Tensor block(const at::Tensor& x, const LayerViews& w, const LayerContext& context) {
  const double eps = context.shape.norm_eps;
  const at::Tensor middle = x + attended(rms_norm(x, w["input_layernorm.weight"], eps), w, context);
  const at::Tensor inner = rms_norm(middle, w["post_attention_layernorm.weight"], eps);
  const at::Tensor gate = at::silu(linear(inner, w, "mlp.gate_proj"));
  const at::Tensor up = linear(inner, w, "mlp.up_proj");
  return middle + linear(gate * up, w, "mlp.down_proj");
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
