// BLOOM (Hugging Face's BloomForCausalLM, names without "transformer."): as GPT-2, but attention
// knows positions by ALiBi, which has no parameters, and the embeddings have a LayerNorm of their
// own.

#include "core/model/architectures/rows.h"
#include "core/model/architectures/shared_parts.h"

namespace sluice::model {
namespace {

void add_bloom_embedding(LayoutBuilder& builder, const std::string& /*layer*/,
                         const ModelShape& shape) {
  builder.normal("word_embeddings.weight", {shape.vocabulary, shape.hidden});
  builder.layer_norm("word_embeddings_layernorm", shape.hidden);
}

void add_bloom_block(LayoutBuilder& builder, const std::string& layer, const ModelShape& shape) {
  const std::int64_t hidden = shape.hidden;
  builder.layer_norm(layer + ".input_layernorm", hidden);
  builder.linear(layer + ".self_attention.query_key_value", hidden, 3 * hidden);
  builder.linear(layer + ".self_attention.dense", hidden, hidden);
  builder.layer_norm(layer + ".post_attention_layernorm", hidden);
  builder.linear(layer + ".mlp.dense_h_to_4h", hidden, 4 * hidden);
  builder.linear(layer + ".mlp.dense_4h_to_h", 4 * hidden, hidden);
}

void add_bloom_head(LayoutBuilder& builder, const std::string& /*layer*/, const ModelShape& shape) {
  builder.layer_norm("ln_f", shape.hidden);
}

}  // namespace

const Architecture kBloom = {
    .name = "bloom",
    .block_name = "h",
    .lora_targets = "query_key_value",
    .positions = Positions::any,
    .embedding = {.add_tensors = add_bloom_embedding, .made = looked_up_and_normed_made},
    .block = {.add_tensors = add_bloom_block,
              .made = plain_block_made,
              .products = plain_block_products,
              .attentions = plain_block_attentions,
              .record = record_plain_block},
    .head = {.add_tensors = add_bloom_head,
             .made = normed_head_made,
             .products = token_logits,
             .record = record_normed_head},
    .number_keys = kTextKeys,
};

}  // namespace sluice::model
