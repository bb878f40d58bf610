#pragma once
// The numbers that give a model its shape, and the model file that holds them
// (docs/model_format.md, sample_models/models/*.toml).
//
// Thread contract: plain data and free functions.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "core/model/flat_layout.h"

namespace sluice::model {

enum class Family : std::uint8_t { gpt2, bert, bloom, vit, llama };

std::string family_name(Family family);
std::vector<std::string> family_names();  // in the order of the enum

struct ModelShape {
  std::string name;
  std::int64_t layers = 0;  // transformer blocks
  std::int64_t hidden = 0;  // width; a multiple of heads
  std::int64_t heads = 0;
  // Longest context: rows of the position table. bloom and llama have no table: the context that
  // they were trained with. vit: the patches of an image and the class token.
  std::int64_t sequence = 0;
  std::int64_t vocabulary = 0;  // vit: 0
  Family family = Family::gpt2;
  // vit only; all else have 0.
  std::int64_t image = 0;  // side of the square image, pixels
  std::int64_t patch = 0;  // side of a patch, pixels
  std::int64_t channels = 0;
  std::int64_t classes = 0;
  // llama only; all else have 0, since each of their heads has its own keys and values, and their
  // MLP is four times as wide as the model.
  std::int64_t kv_heads = 0;  // heads of keys and values, each for heads / kv_heads queries
  std::int64_t ffn = 0;       // width of the MLP

  // The width of a token's keys, and of its values.
  std::int64_t kv_width() const { return kv_heads > 0 ? hidden / heads * kv_heads : hidden; }

  FlatLayout flat_layout() const;  // core/model/family_layouts.h
  bool is_causal() const;          // attention looks back only

  // Errors (ErrorCode::config): that many tokens in a sequence this model cannot take.
  Status check_sequence(std::int64_t asked) const;
};

// ErrorCode::config for the families that have no implementation that computes (core/model/gpt2 is
// the only one).
Status check_trainable(const ModelShape& shape);

// Errors name file, line and key, with the nearest right key.
Result<ModelShape> load_model_shape(const std::string& path);
Result<ModelShape> parse_model_shape(std::string_view toml, const std::string& path_for_messages);

}  // namespace sluice::model
