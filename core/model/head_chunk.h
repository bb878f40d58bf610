#pragma once
// In which pieces the head works, so that its memory does not grow with the batch or, twice, with
// the vocabulary.
//
// Thread contract: free functions, any thread.

#include <algorithm>
#include <cstdint>

#include "core/model/layer_places.h"
#include "core/model/model_factory.h"

namespace sluice::model {

// Rows whose logits exist together, by the answers that each has: a vocabulary's tokens, those of a
// piece of it (widest_logits()), or classes.
// More rows than 1024, which take 103 MB of GPT-2's vocabulary, make the products no faster; of a
// wider one fewer are taken, so that logits stay within 134 MB.
inline constexpr std::int64_t head_chunk_tokens(std::int64_t answers) {
  constexpr std::int64_t kLogits = std::int64_t{1} << 26;
  return std::clamp<std::int64_t>(kLogits / std::max<std::int64_t>(answers, 1), 64, 1024);
}

// fp32 values of a piece of the loss where the processor computes, unless a row has more; about the
// second-level cache of a core.
inline constexpr std::int64_t kLossPieceElements = std::int64_t{1} << 19;

// Rows of the token table that are added to fp32 at a time: adding 16-bit values makes libtorch
// widen them first, as a whole.
inline constexpr std::int64_t kTiedSliceRows = 4096;

// Whether a step makes the head's part of the tied table's gradient as one product or adds several.
inline bool head_is_one_product(const ModelShape& shape, const ModelOptions& options) {
  return options.micro_step_count == 1 && options.batch * shape.target_sequence(options.sequence) <=
                                              head_chunk_tokens(widest_logits(shape));
}

}  // namespace sluice::model
