// Llama: RMSNorm, which has no bias; positions turned into queries and keys, without parameters;
// fewer heads of keys and values than of queries; an MLP whose two inner products are multiplied
// (SwiGLU); and an output table of its own. No product has a bias.

#include "core/model/family_layouts.h"
#include "core/model/layout_builder.h"

namespace sluice::model {
namespace {

// torch's Linear without bias: the weight is [out, in].
void product(LayoutBuilder& builder, const std::string& name, std::int64_t in, std::int64_t out) {
  builder.normal(name + ".weight", {out, in});
}

void add_block(LayoutBuilder& builder, const std::string& layer, const ModelShape& shape) {
  const std::int64_t hidden = shape.hidden;
  builder.begin_layer(layer);
  product(builder, layer + ".self_attn.q_proj", hidden, hidden);
  product(builder, layer + ".self_attn.k_proj", hidden, shape.kv_width());
  product(builder, layer + ".self_attn.v_proj", hidden, shape.kv_width());
  product(builder, layer + ".self_attn.o_proj", hidden, hidden);
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
  product(builder, "lm_head", shape.hidden, shape.vocabulary);
  return builder.take();
}

}  // namespace sluice::model
