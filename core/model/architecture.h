#pragma once
// The architectures as one table: a row for each family, and in it all that a plan, a simulation or
// a calibration asks of one. Layout, FLOP, kept bytes, memory and the model file read the rows;
// nothing else asks which family a model is of. The rows stand in core/model/architectures;
// tests/core/model holds them to libtorch's own saved tensors and to counts written apart.
//
// Thread contract: constants and free functions.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/model/layer_tape.h"
#include "core/model/layout_builder.h"
#include "core/model/made_tensors.h"
#include "core/model/model_shape.h"

namespace sluice::model {

// Rows that a product with a weight has in a micro-batch of batch x sequence tokens.
enum class Rows : std::uint8_t {
  tokens,     // batch x sequence
  patches,    // batch x (sequence - 1): an image's, without the class token
  sequences,  // batch: one token of each
  sources,    // batch x sequence where the layer's own tokens are targets
};

// A product with a weight of [in, out] or its transpose.
struct Product {
  std::int64_t in = 0;
  std::int64_t out = 0;
  Rows rows = Rows::tokens;
};

// Queries `width` wide over all heads, with keys of the same sequence: scores, and values weighted
// by them.
struct Attention {
  std::int64_t width = 0;
  std::int64_t heads = 0;
  bool looks_back_only = false;  // half of the pairs
  bool of_sources = false;       // keys are the source's tokens, of a layer whose own are targets
};

// Whose tokens pass through a layer: with one stack all are sources (ModelShape::target_sequence).
enum class Side : std::uint8_t { source, target };

// A kind of layer. The functions ask the shape alone.
struct LayerKind {
  // Its tensors in flat order, as Hugging Face's modules hold them. `layer` begins their names.
  void (*add_tensors)(LayoutBuilder& builder, const std::string& layer, const ModelShape& shape);
  // The tensors that its forward makes, in the order in which forward saves them, without logits.
  std::vector<MadeTensor> (*made)(const ModelShape& shape);
  std::vector<Product> (*products)(const ModelShape& shape) = nullptr;      // null: none
  std::vector<Attention> (*attentions)(const ModelShape& shape) = nullptr;  // null: none
  // Its operations, for the memory of its backward. Null: its backward goes through none.
  void (*record)(LayerTape& tape, const ModelShape& shape) = nullptr;
  // Values that it makes once a sequence, not once a token; null: none.
  std::int64_t (*sequence_values)(const ModelShape& shape) = nullptr;
  Side side = Side::source;
};

// The table that logits are made with.
enum class OutputTable : std::uint8_t {
  tied,             // the token table
  own_unless_tied,  // of the head, unless ModelShape::tied_tables
  none,             // there is no vocabulary
};

// How many tokens a sequence may have.
enum class Positions : std::uint8_t {
  table,    // at most a table's rows
  any,      // ALiBi and rotary positions do not end
  patches,  // always an image's patches and the class token
};

// Keys of a model file (docs/model_format.md), beside `name` and `family`, each with the place of
// its value in a shape.
template <typename Value>
using Place = Value& (*)(ModelShape& shape);
// kPlace<&ModelShape::rotary, &Rotary::theta>: the member of a member.
template <auto First, auto... Inner>
inline constexpr auto kPlace =
    [](ModelShape& shape) -> auto& { return ((shape.*First).*....*Inner); };
struct NumberKey {
  const char* key = "";
  Place<std::int64_t> place = nullptr;
  std::int64_t largest = 0;      // generous; keeps products of extents inside 64 bits
  bool may_be_left_out = false;  // then 0, which stands for a number that follows from the others
};
struct RealKey {
  const char* key = "";
  Place<double> place = nullptr;
  double least = 0;
  double largest = 0;
  std::optional<double> left_out = {};  // what it is then; none: what ModelShape has
};
struct FlagKey {  // left out: false
  const char* key = "";
  Place<bool> place = nullptr;
};
struct ScalingKey {  // left out: none
  const char* key = "";
  Place<RopeScaling> place = nullptr;
};

// A number of a model file that contradicts the others.
struct ShapeFault {
  const char* key = "";
  std::string message;
};

struct Architecture {
  const char* name = "";
  const char* block_name = "";  // its layers are "BLOCK_NAME.0", "BLOCK_NAME.1", ...
  bool is_causal = true;        // attention looks back only
  bool is_trainable = false;    // core/model/library makes a model of it
  // Why not of this shape, where that is so of some of them; null: of all.
  const char* (*why_not_trainable)(const ModelShape& shape) = nullptr;
  bool is_in_out = false;           // matrices are [in, out], as those of Conv1D, and not [out, in]
  const char* lora_targets = "";    // of its linear layers, those that PEFT gives adapters
  const char* source_modules = "";  // and those of a decoder that read the encoder's output
  OutputTable output_table = OutputTable::tied;
  Positions positions = Positions::table;
  // Attention is computed a window at a time (core/model/torch/grouped_attention.cpp).
  bool attends_by_window = false;
  // The embedding is the token table alone, so that it can be cut (layer_places.h).
  bool cuts_tables = false;
  LayerKind embedding;
  LayerKind block;
  // The second stack's, where ModelShape::has_decoder().
  const char* decoder_block_name = "";
  LayerKind decoder_block = {};
  LayerKind head;
  // The head that answers classes, where ModelShape::classifies(); its input's rows are the
  // source's, its own are a window each.
  LayerKind classifier_head = {};
  std::span<const NumberKey> number_keys;
  std::span<const RealKey> real_keys = {};
  std::span<const FlagKey> flag_keys = {};
  std::span<const ScalingKey> scaling_keys = {};
  // Contradictions of the family's own keys, and what follows from them; null: none.
  std::optional<ShapeFault> (*find_fault)(const ModelShape& shape) = nullptr;
  void (*derive)(ModelShape& shape) = nullptr;
};

// In the order of Family.
std::span<const Architecture* const> architectures();
const Architecture& architecture_of(const ModelShape& shape);
// A piece of a table that is cut has the embedding's, or the head's.
const LayerKind& layer_kind(const ModelShape& shape, LayerId layer);
const LayerKind& head_kind(const ModelShape& shape);
// LayerKind::made and products of a layer, of a piece of a table its own.
std::vector<MadeTensor> made_of(const ModelShape& shape, LayerId layer);
std::vector<Product> products_of(const ModelShape& shape, LayerId layer);

// The tokens of a micro-batch of batch x sequence that a layer has rows of.
LayerTokens layer_tokens(const ModelShape& shape, LayerId layer, std::int64_t batch,
                         std::int64_t sequence);

}  // namespace sluice::model
