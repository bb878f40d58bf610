// Llama (Hugging Face's LlamaForCausalLM, names without "model."): RMSNorm, which has no bias;
// positions turned into queries and keys, without parameters; fewer heads of keys and values than
// of queries; an MLP whose two inner products are multiplied (SwiGLU); and an output table of its
// own, unless tied_tables. No product has a bias, but for those of queries, keys and values with
// qkv_bias (Qwen2), the one behind attention with o_bias and the MLP's with mlp_bias; with qk_norm
// each head of queries and keys goes through an RMSNorm before it is turned (Qwen3). A sliding
// window is a mask: all pairs are computed, so FLOP and tensors are as without it.

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
    NumberKey{"kv_heads", kPlace<&ModelShape::kv_heads>, 1'000'000},
    NumberKey{"ffn", kPlace<&ModelShape::ffn>, 4'000'000},
    NumberKey{"head_dim", kPlace<&ModelShape::head_dim>, 1'000'000, /*may_be_left_out=*/true},
    NumberKey{"window", kPlace<&ModelShape::window, &SlidingWindow::tokens>, 100'000'000,
              /*may_be_left_out=*/true},
    NumberKey{"first_window_block", kPlace<&ModelShape::window, &SlidingWindow::first_block>,
              100'000, /*may_be_left_out=*/true},
    NumberKey{"rope_original_sequence", kPlace<&ModelShape::rotary, &Rotary::original_sequence>,
              100'000'000, /*may_be_left_out=*/true},
};

constexpr std::array kLlamaRealKeys = {
    RealKey{"rope_theta", kPlace<&ModelShape::rotary, &Rotary::theta>, 1, 1e12},
    RealKey{"rope_factor", kPlace<&ModelShape::rotary, &Rotary::factor>, 1, 1e6},
    RealKey{"rope_low_frequency", kPlace<&ModelShape::rotary, &Rotary::low_frequency>, 1e-6, 1e6},
    RealKey{"rope_high_frequency", kPlace<&ModelShape::rotary, &Rotary::high_frequency>, 1e-6, 1e6},
    RealKey{"rope_beta_fast", kPlace<&ModelShape::rotary, &Rotary::beta_fast>, 1e-6, 1e6},
    RealKey{"rope_beta_slow", kPlace<&ModelShape::rotary, &Rotary::beta_slow>, 1e-6, 1e6},
    RealKey{"rope_attention_factor", kPlace<&ModelShape::rotary, &Rotary::attention_factor>, 0,
            1e6},
    RealKey{"norm_eps", kPlace<&ModelShape::norm_eps>, 1e-12, 1},
};

constexpr std::array kLlamaFlagKeys = {
    FlagKey{"tied_tables", kPlace<&ModelShape::tied_tables>},
    FlagKey{"qkv_bias", kPlace<&ModelShape::qkv_bias>},
    FlagKey{"o_bias", kPlace<&ModelShape::o_bias>},
    FlagKey{"mlp_bias", kPlace<&ModelShape::mlp_bias>},
    FlagKey{"qk_norm", kPlace<&ModelShape::qk_norm>},
};

constexpr std::array kLlamaScalingKeys = {
    ScalingKey{"rope_scaling", kPlace<&ModelShape::rotary, &Rotary::scaling>}};

// torch's Linear: the weight is [out, in].
void product(LayoutBuilder& builder, const std::string& name, std::int64_t in, std::int64_t out,
             bool has_bias = false) {
  builder.normal(name + ".weight", {out, in});
  if (has_bias) builder.zeros(name + ".bias", out);
}

void add_llama_self_attention(LayoutBuilder& builder, const std::string& name,
                              const ModelShape& shape) {
  product(builder, name + ".q_proj", shape.hidden, shape.attention_width(), shape.qkv_bias);
  product(builder, name + ".k_proj", shape.hidden, shape.kv_width(), shape.qkv_bias);
  product(builder, name + ".v_proj", shape.hidden, shape.kv_width(), shape.qkv_bias);
  product(builder, name + ".o_proj", shape.attention_width(), shape.hidden, shape.o_bias);
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
  product(builder, layer + ".mlp.gate_proj", shape.hidden, shape.ffn, shape.mlp_bias);
  product(builder, layer + ".mlp.up_proj", shape.hidden, shape.ffn, shape.mlp_bias);
  product(builder, layer + ".mlp.down_proj", shape.ffn, shape.hidden, shape.mlp_bias);
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

LayerTape::Value linear(LayerTape& tape, LayerTape::Value x, std::int64_t width, bool has_bias) {
  return has_bias ? tape.product_plus_bias(x, width) : tape.product(x, width);
}

// Queries or keys.
LayerTape::Value turned_heads(LayerTape& tape, LayerTape::Value x, std::int64_t width,
                              const ModelShape& shape) {
  const auto rows = linear(tape, x, width, shape.qkv_bias);
  return tape.turned(shape.qk_norm ? tape.rms_norm(rows) : rows);
}

void record_llama_block(LayerTape& tape, const ModelShape& shape) {
  const auto x = tape.input(shape.hidden);
  const auto before = tape.rms_norm(x);
  const auto query = turned_heads(tape, before, shape.attention_width(), shape);
  const auto key = turned_heads(tape, before, shape.kv_width(), shape);
  const auto value = linear(tape, before, shape.kv_width(), shape.qkv_bias);
  const auto mixed = tape.attention(query, key, value);
  const auto middle = tape.sum(x, linear(tape, mixed, shape.hidden, shape.o_bias));
  const auto inner = tape.rms_norm(middle);
  const auto gate = tape.activated(linear(tape, inner, shape.ffn, shape.mlp_bias));
  const auto up = linear(tape, inner, shape.ffn, shape.mlp_bias);
  const auto down = linear(tape, tape.times(gate, up), shape.hidden, shape.mlp_bias);
  tape.output(tape.sum(middle, down));
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

void record_llama_head(LayerTape& tape, const ModelShape& shape) {
  tape.output(tape.rms_norm(tape.input(shape.hidden)));
}

std::vector<MadeTensor> llama_head_made(const ModelShape& shape) {
  MadeTensors made(shape.hidden);
  made.rms_norm(shape.hidden);
  return made.take();
}

// A rule of scaling whose numbers are not there, or numbers without a rule.
std::optional<ShapeFault> find_rotary_fault(const Rotary& rotary) {
  const bool measures =
      rotary.scaling == RopeScaling::llama3 || rotary.scaling == RopeScaling::yarn;
  if (measures && rotary.original_sequence == 0) {
    return ShapeFault{"rope_scaling",
                      "'rope_scaling' needs 'rope_original_sequence', the context before it"};
  }
  if (measures && rotary.theta <= 1) {
    return ShapeFault{"rope_theta", "'rope_theta' must be above 1 where frequencies are scaled"};
  }
  if (rotary.scaling == RopeScaling::llama3 && rotary.high_frequency <= rotary.low_frequency) {
    return ShapeFault{"rope_scaling", "'rope_high_frequency' must be above 'rope_low_frequency'"};
  }
  if (rotary.scaling == RopeScaling::none && rotary.factor != 1) {
    return ShapeFault{"rope_factor", "'rope_factor' needs 'rope_scaling', the rule it belongs to"};
  }
  return std::nullopt;
}

std::optional<ShapeFault> find_llama_fault(const ModelShape& shape) {
  if (const auto fault = find_rotary_fault(shape.rotary)) return fault;
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
    .lora_targets = "q_proj,v_proj",
    .output_table = OutputTable::own_unless_tied,
    .positions = Positions::any,
    .attends_by_window = true,
    .cuts_tables = true,
    .embedding = {.add_tensors = add_llama_embedding, .made = looked_up_made},
    .block = {.add_tensors = add_llama_block,
              .made = llama_block_made,
              .products = llama_block_products,
              .attentions = llama_block_attentions,
              .record = record_llama_block},
    .head = {.add_tensors = add_llama_head,
             .made = llama_head_made,
             .products = token_logits,
             .record = record_llama_head},
    .number_keys = kLlamaNumberKeys,
    .real_keys = kLlamaRealKeys,
    .flag_keys = kLlamaFlagKeys,
    .scaling_keys = kLlamaScalingKeys,
    .find_fault = find_llama_fault,
};

}  // namespace sluice::model
