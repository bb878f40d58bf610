#pragma once
// In which pieces the head works, so that its memory does not grow with the batch or, twice, with
// the vocabulary.
//
// Thread contract: free functions, any thread.

#include <cstdint>

#include "core/model/model_factory.h"

namespace sluice::model {

// Tokens whose logits exist together. More rows make the products no faster, and 1024 rows of
// GPT-2's vocabulary take 103 MB.
inline constexpr std::int64_t kHeadChunkTokens = 1024;

// Rows of the token table that are added to fp32 at a time: adding 16-bit values makes libtorch
// widen them first, as a whole.
inline constexpr std::int64_t kTiedSliceRows = 4096;

// Whether a step makes the head's part of the tied table's gradient as one product or adds several.
inline bool head_is_one_product(const ModelOptions& options) {
  return options.micro_step_count == 1 && options.batch * options.sequence <= kHeadChunkTokens;
}

}  // namespace sluice::model
