// The families' tensors against lists written down from Hugging Face's modules, and their numbers
// of parameters against the published ones.

#include <catch2/catch.hpp>

#include "core/model/flat_layout.h"
#include "core/model/model_shape.h"
#include "tests/core/model/small_shapes.h"

namespace sluice::model {
namespace {

using Lines = std::vector<std::string>;

ModelShape small(Family family) {
  ModelShape shape = small_shapes()[static_cast<std::size_t>(family)];
  shape.layers = 1;
  return shape;
}

// "name [extents]" of each tensor of a layer.
Lines tensors_of(const ModelShape& shape, std::int32_t layer) {
  Lines lines;
  for (const TensorInfo& tensor : shape.flat_layout().tensors) {
    if (index_of(tensor.layer) != layer) continue;
    lines.push_back(fmt::format("{} [{}]", tensor.name, fmt::join(tensor.shape, ", ")));
  }
  return lines;
}

std::int64_t parameters(const ModelShape& shape) { return shape.flat_layout().parameter_count; }

std::int64_t parameters(const ModelShape& shape, const std::string& prefix) {
  std::int64_t sum = 0;
  for (const TensorInfo& tensor : shape.flat_layout().tensors) {
    if (tensor.name.starts_with(prefix)) sum += tensor.count;
  }
  return sum;
}

ModelShape bert(std::int64_t layers, std::int64_t hidden, std::int64_t heads) {
  return {"bert", layers, hidden, heads, 512, 30522, Family::bert};
}

ModelShape bloom(std::int64_t layers, std::int64_t hidden, std::int64_t heads) {
  return {"bloom", layers, hidden, heads, 2048, 250880, Family::bloom};
}

ModelShape vit(std::int64_t layers, std::int64_t hidden, std::int64_t heads, std::int64_t patch) {
  const std::int64_t side = 224 / patch;
  return {"vit", layers, hidden, heads, side * side + 1, 0, Family::vit, 224, patch, 3, 1000};
}

struct LlamaSize {
  std::int64_t layers, hidden, heads, vocabulary, kv_heads, ffn;
};

ModelShape llama(const LlamaSize& size) {
  ModelShape shape{"llama", size.layers,     size.hidden,  size.heads,
                   2048,    size.vocabulary, Family::llama};
  shape.kv_heads = size.kv_heads;
  shape.ffn = size.ffn;
  return shape;
}

TEST_CASE("BERT's layers hold the tensors of BertForPreTraining") {
  const ModelShape shape = small(Family::bert);
  CHECK(tensors_of(shape, 0) == Lines{"embeddings.word_embeddings.weight [11, 8]",
                                      "embeddings.position_embeddings.weight [16, 8]",
                                      "embeddings.token_type_embeddings.weight [2, 8]",
                                      "embeddings.LayerNorm.weight [8]",
                                      "embeddings.LayerNorm.bias [8]"});
  CHECK(tensors_of(shape, 1) == Lines{"encoder.layer.0.attention.self.query.weight [8, 8]",
                                      "encoder.layer.0.attention.self.query.bias [8]",
                                      "encoder.layer.0.attention.self.key.weight [8, 8]",
                                      "encoder.layer.0.attention.self.key.bias [8]",
                                      "encoder.layer.0.attention.self.value.weight [8, 8]",
                                      "encoder.layer.0.attention.self.value.bias [8]",
                                      "encoder.layer.0.attention.output.dense.weight [8, 8]",
                                      "encoder.layer.0.attention.output.dense.bias [8]",
                                      "encoder.layer.0.attention.output.LayerNorm.weight [8]",
                                      "encoder.layer.0.attention.output.LayerNorm.bias [8]",
                                      "encoder.layer.0.intermediate.dense.weight [32, 8]",
                                      "encoder.layer.0.intermediate.dense.bias [32]",
                                      "encoder.layer.0.output.dense.weight [8, 32]",
                                      "encoder.layer.0.output.dense.bias [8]",
                                      "encoder.layer.0.output.LayerNorm.weight [8]",
                                      "encoder.layer.0.output.LayerNorm.bias [8]"});
  CHECK(tensors_of(shape, 2) ==
        Lines{"pooler.dense.weight [8, 8]", "pooler.dense.bias [8]", "cls.predictions.bias [11]",
              "cls.predictions.transform.dense.weight [8, 8]",
              "cls.predictions.transform.dense.bias [8]",
              "cls.predictions.transform.LayerNorm.weight [8]",
              "cls.predictions.transform.LayerNorm.bias [8]", "cls.seq_relationship.weight [2, 8]",
              "cls.seq_relationship.bias [2]"});
}

TEST_CASE("BERT's head for masked tokens alone holds the tensors of BertForMaskedLM") {
  ModelShape shape = small(Family::bert);
  shape.masked_head = true;
  shape.ffn = 20;
  shape.segments = 3;
  CHECK(tensors_of(shape, 0)[2] == "embeddings.token_type_embeddings.weight [3, 8]");
  CHECK(tensors_of(shape, 1)[10] == "encoder.layer.0.intermediate.dense.weight [20, 8]");
  CHECK(tensors_of(shape, 2) == Lines{"cls.predictions.transform.dense.weight [8, 8]",
                                      "cls.predictions.transform.dense.bias [8]",
                                      "cls.predictions.transform.LayerNorm.weight [8]",
                                      "cls.predictions.transform.LayerNorm.bias [8]",
                                      "cls.predictions.bias [11]"});
}

TEST_CASE("BERT's head that classifies holds the tensors of BertForSequenceClassification") {
  ModelShape shape = small(Family::bert);
  shape.classes = 3;
  CHECK(tensors_of(shape, 2) == Lines{"pooler.dense.weight [8, 8]", "pooler.dense.bias [8]",
                                      "classifier.weight [3, 8]", "classifier.bias [3]"});
}

TEST_CASE("BLOOM's layers hold the tensors of BloomForCausalLM") {
  const ModelShape shape = small(Family::bloom);
  CHECK(tensors_of(shape, 0) == Lines{"word_embeddings.weight [11, 8]",
                                      "word_embeddings_layernorm.weight [8]",
                                      "word_embeddings_layernorm.bias [8]"});
  CHECK(tensors_of(shape, 1) ==
        Lines{"h.0.input_layernorm.weight [8]", "h.0.input_layernorm.bias [8]",
              "h.0.self_attention.query_key_value.weight [24, 8]",
              "h.0.self_attention.query_key_value.bias [24]",
              "h.0.self_attention.dense.weight [8, 8]", "h.0.self_attention.dense.bias [8]",
              "h.0.post_attention_layernorm.weight [8]", "h.0.post_attention_layernorm.bias [8]",
              "h.0.mlp.dense_h_to_4h.weight [32, 8]", "h.0.mlp.dense_h_to_4h.bias [32]",
              "h.0.mlp.dense_4h_to_h.weight [8, 32]", "h.0.mlp.dense_4h_to_h.bias [8]"});
  CHECK(tensors_of(shape, 2) == Lines{"ln_f.weight [8]", "ln_f.bias [8]"});
}

TEST_CASE("ViT's layers hold the tensors of ViTForImageClassification") {
  const ModelShape shape = small(Family::vit);
  CHECK(tensors_of(shape, 0) == Lines{"embeddings.cls_token [1, 1, 8]",
                                      "embeddings.position_embeddings [1, 26, 8]",
                                      "embeddings.patch_embeddings.projection.weight [8, 3, 7, 7]",
                                      "embeddings.patch_embeddings.projection.bias [8]"});
  CHECK(tensors_of(shape, 1) == Lines{"encoder.layer.0.attention.attention.query.weight [8, 8]",
                                      "encoder.layer.0.attention.attention.query.bias [8]",
                                      "encoder.layer.0.attention.attention.key.weight [8, 8]",
                                      "encoder.layer.0.attention.attention.key.bias [8]",
                                      "encoder.layer.0.attention.attention.value.weight [8, 8]",
                                      "encoder.layer.0.attention.attention.value.bias [8]",
                                      "encoder.layer.0.attention.output.dense.weight [8, 8]",
                                      "encoder.layer.0.attention.output.dense.bias [8]",
                                      "encoder.layer.0.intermediate.dense.weight [32, 8]",
                                      "encoder.layer.0.intermediate.dense.bias [32]",
                                      "encoder.layer.0.output.dense.weight [8, 32]",
                                      "encoder.layer.0.output.dense.bias [8]",
                                      "encoder.layer.0.layernorm_before.weight [8]",
                                      "encoder.layer.0.layernorm_before.bias [8]",
                                      "encoder.layer.0.layernorm_after.weight [8]",
                                      "encoder.layer.0.layernorm_after.bias [8]"});
  CHECK(tensors_of(shape, 2) == Lines{"layernorm.weight [8]", "layernorm.bias [8]",
                                      "classifier.weight [13, 8]", "classifier.bias [13]"});
}

TEST_CASE("Llama's layers hold the tensors of LlamaForCausalLM") {
  const ModelShape shape = small(Family::llama);
  CHECK(tensors_of(shape, 0) == Lines{"embed_tokens.weight [11, 12]"});
  CHECK(
      tensors_of(shape, 1) ==
      Lines{"layers.0.self_attn.q_proj.weight [12, 12]", "layers.0.self_attn.k_proj.weight [6, 12]",
            "layers.0.self_attn.v_proj.weight [6, 12]", "layers.0.self_attn.o_proj.weight [12, 12]",
            "layers.0.mlp.gate_proj.weight [20, 12]", "layers.0.mlp.up_proj.weight [20, 12]",
            "layers.0.mlp.down_proj.weight [12, 20]", "layers.0.input_layernorm.weight [12]",
            "layers.0.post_attention_layernorm.weight [12]"});
  CHECK(tensors_of(shape, 2) == Lines{"norm.weight [12]", "lm_head.weight [11, 12]"});
}

TEST_CASE("a llama with keys of its own holds the tensors of Qwen2 and Qwen3 as well") {
  ModelShape shape = small(Family::llama);
  shape.head_dim = 5;
  shape.tied_tables = true;
  shape.qkv_bias = true;
  shape.qk_norm = true;
  CHECK(tensors_of(shape, 1) ==
        Lines{"layers.0.self_attn.q_proj.weight [20, 12]", "layers.0.self_attn.q_proj.bias [20]",
              "layers.0.self_attn.k_proj.weight [10, 12]", "layers.0.self_attn.k_proj.bias [10]",
              "layers.0.self_attn.v_proj.weight [10, 12]", "layers.0.self_attn.v_proj.bias [10]",
              "layers.0.self_attn.o_proj.weight [12, 20]", "layers.0.self_attn.q_norm.weight [5]",
              "layers.0.self_attn.k_norm.weight [5]", "layers.0.mlp.gate_proj.weight [20, 12]",
              "layers.0.mlp.up_proj.weight [20, 12]", "layers.0.mlp.down_proj.weight [12, 20]",
              "layers.0.input_layernorm.weight [12]",
              "layers.0.post_attention_layernorm.weight [12]"});
  CHECK(tensors_of(shape, 2) == Lines{"norm.weight [12]"});
}

TEST_CASE("T5's layers hold the tensors of T5ForConditionalGeneration, of both versions") {
  ModelShape shape = small_shapes()[static_cast<std::size_t>(Family::t5)];
  CHECK(tensors_of(shape, 0) ==
        Lines{"shared.weight [11, 8]",
              "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight [12, 2]",
              "decoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight [12, 2]",
              "encoder.final_layer_norm.weight [8]"});
  CHECK(tensors_of(shape, 1) == Lines{"encoder.block.0.layer.0.SelfAttention.q.weight [10, 8]",
                                      "encoder.block.0.layer.0.SelfAttention.k.weight [10, 8]",
                                      "encoder.block.0.layer.0.SelfAttention.v.weight [10, 8]",
                                      "encoder.block.0.layer.0.SelfAttention.o.weight [8, 10]",
                                      "encoder.block.0.layer.0.layer_norm.weight [8]",
                                      "encoder.block.0.layer.1.DenseReluDense.wi.weight [20, 8]",
                                      "encoder.block.0.layer.1.DenseReluDense.wo.weight [8, 20]",
                                      "encoder.block.0.layer.1.layer_norm.weight [8]"});
  CHECK(tensors_of(shape, 4) == Lines{"decoder.final_layer_norm.weight [8]"});
  shape.tied_tables = false;
  shape.stacks.gated_mlp = true;
  CHECK(tensors_of(shape, 3) == Lines{"decoder.block.1.layer.0.SelfAttention.q.weight [10, 8]",
                                      "decoder.block.1.layer.0.SelfAttention.k.weight [10, 8]",
                                      "decoder.block.1.layer.0.SelfAttention.v.weight [10, 8]",
                                      "decoder.block.1.layer.0.SelfAttention.o.weight [8, 10]",
                                      "decoder.block.1.layer.0.layer_norm.weight [8]",
                                      "decoder.block.1.layer.1.EncDecAttention.q.weight [10, 8]",
                                      "decoder.block.1.layer.1.EncDecAttention.k.weight [10, 8]",
                                      "decoder.block.1.layer.1.EncDecAttention.v.weight [10, 8]",
                                      "decoder.block.1.layer.1.EncDecAttention.o.weight [8, 10]",
                                      "decoder.block.1.layer.1.layer_norm.weight [8]",
                                      "decoder.block.1.layer.2.DenseReluDense.wi_0.weight [20, 8]",
                                      "decoder.block.1.layer.2.DenseReluDense.wi_1.weight [20, 8]",
                                      "decoder.block.1.layer.2.DenseReluDense.wo.weight [8, 20]",
                                      "decoder.block.1.layer.2.layer_norm.weight [8]"});
  CHECK(tensors_of(shape, 4) ==
        Lines{"decoder.final_layer_norm.weight [8]", "lm_head.weight [11, 8]"});
}

ModelShape t5(std::int64_t blocks, std::int64_t hidden, std::int64_t heads, std::int64_t ffn) {
  ModelShape shape{"t5", 2 * blocks, hidden, heads, 512, 32128, Family::t5};
  shape.stacks.encoder_layers = blocks;
  shape.head_dim = 64;
  shape.ffn = ffn;
  shape.tied_tables = true;
  return shape;
}

TEST_CASE("each family has the published number of parameters") {
  // google-bert/bert-{base,large}-uncased: the whole checkpoint, and BertModel.
  CHECK(parameters(bert(12, 768, 12)) == 110'106'428);
  CHECK(parameters(bert(12, 768, 12)) - parameters(bert(12, 768, 12), "cls.") == 109'482'240);
  CHECK(parameters(bert(24, 1024, 16)) == 336'226'108);
  CHECK(parameters(bert(24, 1024, 16)) - parameters(bert(24, 1024, 16), "cls.") == 335'141'888);
  // bigscience/bloom-560m, -1b1, -1b7, -3b, -7b1 and bloom itself.
  CHECK(parameters(bloom(24, 1024, 16)) == 559'214'592);
  CHECK(parameters(bloom(24, 1536, 16)) == 1'065'314'304);
  CHECK(parameters(bloom(24, 2048, 16)) == 1'722'408'960);
  CHECK(parameters(bloom(30, 2560, 32)) == 3'002'557'440);
  CHECK(parameters(bloom(30, 4096, 32)) == 7'069'016'064);
  CHECK(parameters(bloom(70, 14336, 112)) == 176'247'271'424);
  // torchvision's num_params of vit_b_16, vit_l_16 and vit_h_14.
  CHECK(parameters(vit(12, 768, 12, 16)) == 86'567'656);
  CHECK(parameters(vit(24, 1024, 16, 16)) == 304'326'632);
  CHECK(parameters(vit(32, 1280, 16, 14)) == 632'045'800);
  // TinyLlama-1.1B, Llama-2-7b, -13b and -70b, Meta-Llama-3-8B.
  CHECK(parameters(llama({22, 2048, 32, 32000, 4, 5632})) == 1'100'048'384);
  CHECK(parameters(llama({32, 4096, 32, 32000, 32, 11008})) == 6'738'415'616);
  CHECK(parameters(llama({40, 5120, 40, 32000, 40, 13824})) == 13'015'864'320);
  CHECK(parameters(llama({80, 8192, 64, 32000, 8, 28672})) == 68'976'648'192);
  CHECK(parameters(llama({32, 4096, 32, 128256, 8, 14336})) == 8'030'261'248);
  // Llama-3.2-1B, Qwen2.5-7B, Qwen3-0.6B.
  ModelShape tied = llama({16, 2048, 32, 128256, 8, 8192});
  tied.tied_tables = true;
  CHECK(parameters(tied) == 1'235'814'400);
  ModelShape biased = llama({28, 3584, 28, 152064, 4, 18944});
  biased.qkv_bias = true;
  CHECK(parameters(biased) == 7'615'616'512);
  ModelShape normed = llama({28, 1024, 16, 151936, 8, 3072});
  normed.head_dim = 128;
  normed.tied_tables = true;
  normed.qk_norm = true;
  CHECK(parameters(normed) == 596'049'920);
  // google-t5/t5-small and -base, google/t5-v1_1-small and -base.
  CHECK(parameters(t5(6, 512, 8, 2048)) == 60'506'624);
  CHECK(parameters(t5(12, 768, 12, 3072)) == 222'903'552);
  ModelShape later = t5(8, 512, 6, 1024);
  later.tied_tables = false;
  later.stacks.gated_mlp = true;
  CHECK(parameters(later) == 76'961'152);
  later = t5(12, 768, 12, 2048);
  later.tied_tables = false;
  later.stacks.gated_mlp = true;
  CHECK(parameters(later) == 247'577'856);
}

TEST_CASE("states of GPT-2 that exist stay theirs: its fingerprints do not change") {
  const ModelShape tiny{"tiny", 4, 256, 4, 128, 256};
  const ModelShape small{"gpt2-124m", 12, 768, 12, 1024, 50257};
  CHECK(tiny.flat_layout().fingerprint() == 0x9defa96951097cdd);
  CHECK(small.flat_layout().fingerprint() == 0xdb065197acd82b0f);
}

}  // namespace
}  // namespace sluice::model
