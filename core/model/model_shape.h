#pragma once
// The numbers that give a model its shape, and the model file that holds them
// (docs/model_format.md, sample_models/models/*.toml).
//
// Thread contract: plain data and free functions.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "core/model/flat_layout.h"

namespace sluice::model {

// A row of the table of architectures (core/model/architecture.h).
enum class Family : std::uint8_t { gpt2, bert, bloom, vit, llama, t5 };
inline constexpr std::size_t kFamilyCount = 6;

std::string family_name(Family family);
std::vector<std::string> family_names();  // in the order of the enum

// Pair i turns by position x f_i radians, and f_i = theta^(-2 i / head_width) where nothing is
// scaled. The others are those of Hugging Face's transformers 5 (its module modeling_rope_utils),
// by the names there (rotary_frequencies.h).
enum class RopeScaling : std::uint8_t {
  none,    // "default"
  linear,  // all of them `factor` times slower
  llama3,  // the slow ones are, the fast ones are not, and those between partly (Llama 3.1)
  yarn,    // the same by another measure, and what is turned grows (arXiv:2309.00071)
};
inline constexpr std::array<const char*, 4> kRopeScalingNames = {"none", "linear", "llama3",
                                                                 "yarn"};

struct Rotary {
  double theta = 1e4;
  RopeScaling scaling = RopeScaling::none;
  double factor = 1;                   // how many times longer a context is
  std::int64_t original_sequence = 0;  // llama3, yarn: the context before it was
  // llama3: pairs that turn less than `low_frequency` times in that context are slow, those that
  // turn more than `high_frequency` times are fast.
  double low_frequency = 1;
  double high_frequency = 4;
  // yarn: the same, the fast ones first.
  double beta_fast = 32;
  double beta_slow = 1;
  double attention_factor = 0;  // yarn: on queries and keys; 0: 0.1 ln(factor) + 1
  bool operator==(const Rotary&) const = default;
};

// How far a token's attention looks back in a block.
struct SlidingWindow {
  std::int64_t tokens = 0;       // itself and those before it; 0: all of them
  std::int64_t first_block = 0;  // blocks before this one look back at all
  bool operator==(const SlidingWindow&) const = default;

  bool limits(std::int64_t block, std::int64_t sequence) const {
    return tokens > 0 && sequence > tokens && block >= first_block;
  }
};

// Low-rank adapters beside linear layers of a model, where they alone are trained (docs/lora.md;
// core/model/lora.h makes and lists them).
struct Lora {
  std::int64_t rank = 0;  // 0: there are none, and all of the model is trained
  double alpha = 0;
  // The linear layers that have one, in the layout's order: "layers.0.self_attn.q_proj".
  std::vector<std::string> modules = {};

  // On what an adapter adds.
  double scale() const { return alpha / static_cast<double>(rank); }
};

// Which spans of a text a decoder has to answer (span_lengths.h).
struct SpanRule {
  double share = 0.15;  // of a text's tokens, that are in spans
  double length = 3;    // of a span, in the mean
  bool operator==(const SpanRule&) const = default;
};

// A model of two stacks: the encoder's blocks read a source, and the decoder's, which come behind
// them, read what the encoder made of it and answer targets.
struct EncoderDecoder {
  std::int64_t encoder_layers = 0;   // of the blocks, the first ones; 0: there is one stack
  std::int64_t buckets = 0;          // of distances between tokens; 0: 32
  std::int64_t bucket_distance = 0;  // from which on all distances are alike; 0: 128
  std::int64_t start_token = 0;      // the decoder's first input
  std::int64_t end_token = 0;        // the last one of a source and of its targets; 0: 1
  bool gated_mlp = false;            // gelu of a gate times the other product; else relu of one
  // How long targets are: the run says it (settings span_share and span_length), no model file.
  SpanRule spans = {};
};

// Shares of values that training sets to 0 (core/model/torch/dropout.h); gpt2, bert and t5 only.
struct DropShares {
  double embedding = 0;  // of the embedding's result
  double attention = 0;  // of attention's weights
  double rows = 0;       // of what a sublayer adds to the stream; t5: of its MLP's width, too
  double output = 0;     // t5: of each stack's result, behind its norm; bert: of what is pooled
  bool operator==(const DropShares&) const = default;
};

struct ModelShape {
  std::string name;
  std::int64_t layers = 0;  // transformer blocks
  std::int64_t hidden = 0;  // width; a multiple of heads, unless head_dim is said
  std::int64_t heads = 0;
  // Longest context: rows of the position table. bloom and llama have no table: the context that
  // they were trained with. vit: the patches of an image and the class token.
  std::int64_t sequence = 0;
  std::int64_t vocabulary = 0;  // vit: 0
  Family family = Family::gpt2;
  // vit only, but for `classes`; all else have 0.
  std::int64_t image = 0;  // side of the square image, pixels
  std::int64_t patch = 0;  // side of a patch, pixels
  std::int64_t channels = 0;
  std::int64_t classes = 0;  // bert: of a record, where it classifies; 0: it does not
  // llama only, but for `ffn` and `norm_eps`, which bert and t5 have, too, and `head_dim` and
  // `tied_tables` of t5; all else have 0 and false, since each of their heads has its own keys and
  // values and an equal share of the width.
  std::int64_t kv_heads = 0;  // heads of keys and values, each for heads / kv_heads queries
  std::int64_t ffn = 0;       // width of the MLP; 0: four times as wide as the model
  std::int64_t head_dim = 0;  // width of a head; 0: hidden / heads
  bool tied_tables = false;   // the output table is the token table
  bool qkv_bias = false;      // queries, keys and values have a bias, as qwen2's
  bool o_bias = false;        // the product behind attention has one
  bool mlp_bias = false;      // those of the MLP have one
  bool qk_norm = false;       // each head of queries and keys goes through an RMSNorm, as qwen3's
  double norm_eps = 1e-5;     // added to an RMSNorm's mean square; bert: to a LayerNorm's variance
  Rotary rotary = {};
  SlidingWindow window = {};
  DropShares dropout = {};
  Lora lora = {};  // no key of a model file: a run's settings say it
  // bert only.
  bool masked_head = false;   // BertForMaskedLM's, without pooler and next-sentence answer
  std::int64_t segments = 0;  // kinds of tokens; 0: two
  // t5 only.
  EncoderDecoder stacks = {};

  std::int64_t head_width() const { return head_dim > 0 ? head_dim : hidden / heads; }
  // The width of a token's queries, of its keys, and of its values.
  std::int64_t attention_width() const { return head_dim > 0 ? head_dim * heads : hidden; }
  std::int64_t kv_width() const { return kv_heads > 0 ? head_width() * kv_heads : hidden; }

  std::int64_t mlp_width() const { return ffn > 0 ? ffn : 4 * hidden; }

  // Whether the head answers a class for each window, and no tokens.
  bool classifies() const;
  // Whether the head's matrix is a table of the head alone, and not the token table.
  bool has_own_output_table() const;

  std::int64_t segment_count() const { return segments > 0 ? segments : 2; }

  bool has_adapters() const { return lora.rank > 0; }
  bool has_decoder() const { return stacks.encoder_layers > 0; }
  std::int64_t decoder_layers() const { return layers - stacks.encoder_layers; }
  std::int64_t bucket_count() const { return stacks.buckets > 0 ? stacks.buckets : 32; }
  std::int64_t bucket_distance() const {
    return stacks.bucket_distance > 0 ? stacks.bucket_distance : 128;
  }
  std::int64_t end_token() const { return stacks.end_token > 0 ? stacks.end_token : 1; }
  // Targets of a window of `sequence` tokens: as many, those of a decoder at most, or its class.
  std::int64_t target_sequence(std::int64_t sequence) const;
  // Tokens of it that are looked up in the token table: a decoder's inputs, too.
  std::int64_t looked_up_sequence(std::int64_t sequence) const;
  // The same with one block of each kind: what the depth does not matter to asks it.
  ModelShape with_least_depth() const;

  // The tensors that are trained: all of the model's, or its adapters'. Layers without an adapter
  // are empty then.
  FlatLayout flat_layout() const;
  FlatLayout base_layout() const;  // the model's own tensors
  bool is_causal() const;          // attention looks back only

  // Errors (ErrorCode::config): that many tokens in a sequence this model cannot take.
  Status check_sequence(std::int64_t asked) const;
};

// The answers that the head chooses from: classes, or the tokens of the vocabulary.
inline std::int64_t answer_count(const ModelShape& shape) {
  return shape.classifies() ? shape.classes : shape.vocabulary;
}

// ErrorCode::config for the shapes that have no implementation that computes.
Status check_trainable(const ModelShape& shape);

// Errors name file, line and key, with the nearest right key.
Result<ModelShape> load_model_shape(const std::string& path);
Result<ModelShape> parse_model_shape(std::string_view toml, const std::string& path_for_messages);

// Each key that a file of the shape's family has, and its value.
std::vector<std::pair<std::string, std::string>> file_values(const ModelShape& shape);
// A model file of these keys and values, which parses to the shape that they are of. A number of 0
// is one that was left out.
std::string model_file_text(const std::vector<std::pair<std::string, std::string>>& values);

}  // namespace sluice::model
