#pragma once
// A model file: the numbers that give a GPT-2-style model its shape (sample_models/models/*.toml).

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "core/model/flat_layout.h"

namespace sluice::model {

struct ModelShape {
  std::string name;
  std::int64_t layers = 0;  // transformer blocks
  std::int64_t hidden = 0;  // width; a multiple of heads
  std::int64_t heads = 0;
  std::int64_t sequence = 0;  // longest context: rows of the position table
  std::int64_t vocabulary = 0;

  FlatLayout flat_layout()
      const;  // GPT-2, pre-LN, tied embeddings, Hugging Face's names without "transformer."
};

// Errors name file, line and key, with the nearest right key.
Result<ModelShape> load_model_shape(const std::string& path);
Result<ModelShape> parse_model_shape(std::string_view toml, const std::string& path_for_messages);

}  // namespace sluice::model
