// BLOOM: as GPT-2, but attention knows positions by ALiBi, which has no parameters, and the
// embeddings have a LayerNorm of their own.

#include "core/model/family_layouts.h"
#include "core/model/layout_builder.h"

namespace sluice::model {

FlatLayout bloom_layout(const ModelShape& shape) {
  const std::int64_t hidden = shape.hidden;
  LayoutBuilder builder;
  builder.begin_layer("embedding");
  builder.normal("word_embeddings.weight", {shape.vocabulary, hidden});
  builder.layer_norm("word_embeddings_layernorm", hidden);
  for (std::int64_t block = 0; block < shape.layers; ++block) {
    const std::string h = fmt::format("h.{}", block);
    builder.begin_layer(h);
    builder.layer_norm(h + ".input_layernorm", hidden);
    builder.linear(h + ".self_attention.query_key_value", hidden, 3 * hidden);
    builder.linear(h + ".self_attention.dense", hidden, hidden);
    builder.layer_norm(h + ".post_attention_layernorm", hidden);
    builder.linear(h + ".mlp.dense_h_to_4h", hidden, 4 * hidden);
    builder.linear(h + ".mlp.dense_4h_to_h", 4 * hidden, hidden);
  }
  builder.begin_layer("head");
  builder.layer_norm("ln_f", hidden);
  return builder.take();
}

}  // namespace sluice::model
