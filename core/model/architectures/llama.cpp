// Llama (Hugging Face's LlamaForCausalLM, names without "model."): RMSNorm, which has no bias;
// positions turned into queries and keys, without parameters; fewer heads of keys and values than
// of queries; an MLP whose two inner products are multiplied (SwiGLU); and an output table of its
// own, unless tied_tables. No product has a bias, but for those of queries, keys and values with
// qkv_bias (Qwen2); with qk_norm each head of queries and keys goes through an RMSNorm before it is
// turned (Qwen3).

#include "core/model/architectures/rows.h"
#include "core/model/architectures/shared_parts.h"

namespace sluice::model {
namespace {

constexpr std::array kLlamaNumberKeys = {
    kLayersKey,
    kHiddenKey,
    kHeadsKey,
    kSequenceKey,
    kVocabularyKey,
    NumberKey{"kv_heads", &ModelShape::kv_heads, 1'000'000},
    NumberKey{"ffn", &ModelShape::ffn, 4'000'000},
    NumberKey{"head_dim", &ModelShape::head_dim, 1'000'000, /*may_be_left_out=*/true},
};

constexpr std::array kLlamaRealKeys = {
    RealKey{"rope_theta", &ModelShape::rope_theta, 1, 1e12},
    RealKey{"norm_eps", &ModelShape::norm_eps, 1e-12, 1},
};

constexpr std::array kLlamaFlagKeys = {
    FlagKey{"tied_tables", &ModelShape::tied_tables},
    FlagKey{"qkv_bias", &ModelShape::qkv_bias},
    FlagKey{"qk_norm", &ModelShape::qk_norm},
};

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

void add_llama_self_attention(LayoutBuilder& builder, const std::string& name,
                              const ModelShape& shape) {
  input_product(builder, name + ".q_proj", shape, shape.attention_width());
  input_product(builder, name + ".k_proj", shape, shape.kv_width());
  input_product(builder, name + ".v_proj", shape, shape.kv_width());
  product(builder, name + ".o_proj", shape.attention_width(), shape.hidden);
  if (!shape.qk_norm) return;
  builder.ones(name + ".q_norm.weight", shape.head_width());
  builder.ones(name + ".k_norm.weight", shape.head_width());
}

void add_llama_embedding(LayoutBuilder& builder, const std::string& /*layer*/,
                         const ModelShape& shape) {
  builder.normal("embed_tokens.weight", {shape.vocabulary, shape.hidden});
}

void add_llama_block(LayoutBuilder& builder, const std::string& layer, const ModelShape& shape) {
  add_llama_self_attention(builder, layer + ".self_attn", shape);
  product(builder, layer + ".mlp.gate_proj", shape.hidden, shape.ffn);
  product(builder, layer + ".mlp.up_proj", shape.hidden, shape.ffn);
  product(builder, layer + ".mlp.down_proj", shape.ffn, shape.hidden);
  builder.ones(layer + ".input_layernorm.weight", shape.hidden);
  builder.ones(layer + ".post_attention_layernorm.weight", shape.hidden);
}

// Queries or keys before they are turned. Turning them needs angles alone in backward, so their
// rows before are not kept; only the norm of each head needs its input.
void add_heads(MadeTensors& made, const ModelShape& shape, std::int64_t width) {
  if (!shape.qk_norm) return made.passing("before it is turned", width);
  made.kept("before its norm", width);
  made.statistic("reciprocal root mean square of a head", width / shape.head_width(), kFp32Bytes);
  made.kept("normalised", width);
  made.passing("with weight", width);
}

std::vector<MadeTensor> llama_block_made(const ModelShape& shape) {
  MadeTensors made(shape.hidden);
  made.rms_norm(shape.hidden);
  add_heads(made, shape, shape.attention_width());
  add_heads(made, shape, shape.kv_width());
  made.kept("query, turned", shape.attention_width());
  made.kept("key, turned", shape.kv_width());
  made.kept("value", shape.kv_width());
  made.fused_attention(shape.heads, shape.attention_width());
  made.kept("residual stream in the middle", shape.hidden);
  made.rms_norm(shape.hidden);
  made.kept("gate", shape.ffn);
  made.kept("silu of the gate", shape.ffn);
  made.kept("up", shape.ffn);
  made.kept("product of the two", shape.ffn);
  made.in_memory("output", shape.hidden);
  return made.take();
}

std::vector<Product> llama_block_products(const ModelShape& shape) {
  return {{shape.hidden, shape.attention_width()},
          {shape.hidden, shape.kv_width()},
          {shape.hidden, shape.kv_width()},
          {shape.attention_width(), shape.hidden},
          {shape.hidden, shape.ffn},
          {shape.hidden, shape.ffn},
          {shape.ffn, shape.hidden}};
}

std::vector<Attention> llama_block_attentions(const ModelShape& shape) {
  return {{shape.attention_width(), shape.heads, shape.is_causal()}};
}

void add_llama_head(LayoutBuilder& builder, const std::string& /*layer*/, const ModelShape& shape) {
  builder.ones("norm.weight", shape.hidden);
  if (!shape.tied_tables) product(builder, "lm_head", shape.hidden, shape.vocabulary);
}

std::vector<MadeTensor> llama_head_made(const ModelShape& shape) {
  MadeTensors made(shape.hidden);
  made.rms_norm(shape.hidden);
  return made.take();
}

std::optional<ShapeFault> find_llama_fault(const ModelShape& shape) {
  if (shape.head_width() % 2 != 0) {
    return ShapeFault{
        shape.head_dim > 0 ? "head_dim" : "heads",
        fmt::format("a head is {} wide; rotary positions turn pairs of its values, so "
                    "its width must be even",
                    shape.head_width())};
  }
  if (shape.heads % shape.kv_heads == 0) return std::nullopt;
  return ShapeFault{"kv_heads",
                    fmt::format("'heads' = {} is not a multiple of 'kv_heads' = {}; each head of "
                                "keys and values serves equally many of queries",
                                shape.heads, shape.kv_heads)};
}

}  // namespace

const Architecture kLlama = {
    .name = "llama",
    .block_name = "layers",
    .is_trainable = true,
    .output_table = OutputTable::own_unless_tied,
    .positions = Positions::any,
    .mlp_tensors = 4,
    .embedding = {.add_tensors = add_llama_embedding, .made = looked_up_made},
    .block = {.add_tensors = add_llama_block,
              .made = llama_block_made,
              .products = llama_block_products,
              .attentions = llama_block_attentions},
    .head = {.add_tensors = add_llama_head, .made = llama_head_made, .products = token_logits},
    .number_keys = kLlamaNumberKeys,
    .real_keys = kLlamaRealKeys,
    .flag_keys = kLlamaFlagKeys,
    .find_fault = find_llama_fault,
};

}  // namespace sluice::model
