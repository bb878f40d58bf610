#pragma once
// The sizes of the blocks that KeptBlocks::kept() gives, from the shape alone: what a run is
// planned with, and what moves in simulated time. Which tensors those are is said in
// core/model/made_tensors.h. tests/core/model/gpt2/saved_blocks_test.cpp holds GPT-2 to
// it, byte by byte, and a block of a llama in libtorch, too.
//
// Thread contract: free functions.

#include <cstdint>
#include <vector>

#include "base/parameter_span.h"
#include "core/model/activations.h"
#include "core/model/model_shape.h"

namespace sluice::model {

// Storages below this are gathered into one block, the last of a layer's.
inline constexpr std::int64_t kOwnBlockBytes = 128 << 10;

// One micro-batch of batch x sequence tokens. Empty where nothing leaves: a layer that
// is not offloaded, and the embedding, whose backward needs tokens alone (what the LayerNorm
// of bert's and bloom's needs stays where it was computed). Where adapters alone are trained, these
// are bounds: less of a layer is needed for its input's gradient than for that of its weights.
std::vector<std::int64_t> kept_block_bytes(const ModelShape& shape, LayerId layer,
                                           std::int64_t batch, std::int64_t sequence,
                                           Activations choice, ParameterKind precision);

}  // namespace sluice::model
