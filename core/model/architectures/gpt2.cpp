// GPT-2 (Hugging Face's GPT2LMHeadModel, names without "transformer."), with the initial values of
// its paper and code: weights N(0, 0.02); the two projections that write into the residual stream
// divided by sqrt(2 * layers), so that the stream's variance does not grow with depth; positions
// N(0, 0.01) as in OpenAI's own code (Hugging Face uses 0.02: either trains, and the smaller lets
// the tokens dominate at the start); LayerNorm one and zero; biases zero.

#include <cmath>

#include "core/model/architectures/rows.h"
#include "core/model/architectures/shared_parts.h"

namespace sluice::model {
namespace {

constexpr double kPositionStd = 0.01;

// Hugging Face's Conv1D: the weight is [in, out], so y = x W + b.
void conv1d(LayoutBuilder& builder, const std::string& name, std::int64_t in, std::int64_t out,
            double std_dev = kWeightStd) {
  builder.normal(name + ".weight", {in, out}, std_dev);
  builder.zeros(name + ".bias", out);
}

void add_gpt2_embedding(LayoutBuilder& builder, const std::string& /*layer*/,
                        const ModelShape& shape) {
  builder.normal("wte.weight", {shape.vocabulary, shape.hidden});
  builder.normal("wpe.weight", {shape.sequence, shape.hidden}, kPositionStd);
}

void add_gpt2_block(LayoutBuilder& builder, const std::string& layer, const ModelShape& shape) {
  const std::int64_t hidden = shape.hidden;
  const double residual_std = kWeightStd / std::sqrt(2.0 * static_cast<double>(shape.layers));
  builder.layer_norm(layer + ".ln_1", hidden);
  conv1d(builder, layer + ".attn.c_attn", hidden, 3 * hidden);
  conv1d(builder, layer + ".attn.c_proj", hidden, hidden, residual_std);
  builder.layer_norm(layer + ".ln_2", hidden);
  conv1d(builder, layer + ".mlp.c_fc", hidden, 4 * hidden);
  conv1d(builder, layer + ".mlp.c_proj", 4 * hidden, hidden, residual_std);
}

void add_gpt2_head(LayoutBuilder& builder, const std::string& /*layer*/, const ModelShape& shape) {
  builder.layer_norm("ln_f", shape.hidden);
}

constexpr std::array kGpt2RealKeys = {kDropoutKey, kAttentionDropoutKey, kEmbeddingDropoutKey};

}  // namespace

const Architecture kGpt2 = {
    .name = "gpt2",
    .block_name = "h",
    .is_trainable = true,
    .is_in_out = true,
    .lora_targets = "c_attn",
    .embedding = {.add_tensors = add_gpt2_embedding, .made = looked_up_made},
    .block = {.add_tensors = add_gpt2_block,
              .made = plain_block_made,
              .products = plain_block_products,
              .attentions = plain_block_attentions,
              .record = record_plain_block},
    .head = {.add_tensors = add_gpt2_head,
             .made = normed_head_made,
             .products = token_logits,
             .record = record_normed_head},
    .number_keys = kTextKeys,
    .real_keys = kGpt2RealKeys,
};

}  // namespace sluice::model
