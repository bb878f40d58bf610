// Llama: RMSNorm, which has no bias; positions turned into queries and keys, without parameters;
// fewer heads of keys and values than of queries; an MLP whose two inner products are multiplied
// (SwiGLU); and an output table of its own, unless tied_tables. No product has a bias, but for
// those of queries, keys and values with qkv_bias (Qwen2); with qk_norm each head of queries and
// keys goes through an RMSNorm before it is turned (Qwen3).

#include "core/model/family_layouts.h"
#include "core/model/layout_builder.h"

namespace sluice::model {
namespace {

// torch's Linear without bias: the weight is [out, in].
void product(LayoutBuilder& builder, const std::string& name, std::int64_t in, std::int64_t out) {
  builder.normal(name + ".weight", {out, in});
}

// queries, keys and values.
void input_product(LayoutBuilder& builder, const std::string& name, const ModelShape& shape,
                   std::int64_t width) {
  product(builder, name, shape.hidden, width);
  if (shape.qkv_bias) builder.zeros(name + ".bias", width);
}

void add_self_attention(LayoutBuilder& builder, const std::string& name, const ModelShape& shape) {
  input_product(builder, name + ".q_proj", shape, shape.attention_width());
  input_product(builder, name + ".k_proj", shape, shape.kv_width());
  input_product(builder, name + ".v_proj", shape, shape.kv_width());
  product(builder, name + ".o_proj", shape.attention_width(), shape.hidden);
  if (!shape.qk_norm) return;
  builder.ones(name + ".q_norm.weight", shape.head_width());
  builder.ones(name + ".k_norm.weight", shape.head_width());
}

void add_block(LayoutBuilder& builder, const std::string& layer, const ModelShape& shape) {
  const std::int64_t hidden = shape.hidden;
  builder.begin_layer(layer);
  add_self_attention(builder, layer + ".self_attn", shape);
  product(builder, layer + ".mlp.gate_proj", hidden, shape.ffn);
  product(builder, layer + ".mlp.up_proj", hidden, shape.ffn);
  product(builder, layer + ".mlp.down_proj", shape.ffn, hidden);
  builder.ones(layer + ".input_layernorm.weight", hidden);
  builder.ones(layer + ".post_attention_layernorm.weight", hidden);
}

}  // namespace

FlatLayout llama_layout(const ModelShape& shape) {
  LayoutBuilder builder;
  builder.begin_layer("embedding");
  builder.normal("embed_tokens.weight", {shape.vocabulary, shape.hidden});
  for (std::int64_t block = 0; block < shape.layers; ++block) {
    add_block(builder, fmt::format("layers.{}", block), shape);
  }
  builder.begin_layer("head");
  builder.ones("norm.weight", shape.hidden);
  if (!shape.tied_tables) product(builder, "lm_head", shape.hidden, shape.vocabulary);
  return builder.take();
}

}  // namespace sluice::model
