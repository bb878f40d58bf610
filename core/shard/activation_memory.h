#pragma once
// The bytes that the layers of a rank keep of one micro-batch between forward and backward. Layers
// are whole on every rank while they are computed, so no scope makes it less.
//
// Counted as each family's blocks keep it (core/model/architecture.h).
//
// Thread contract: free function.

#include <cstdint>

#include "base/parameter_span.h"
#include "core/model/activations.h"
#include "core/model/model_shape.h"

namespace sluice::shard {

// A layer that is computed anew keeps its input, and the widest of these has all of its own again
// while its backward runs. The head keeps its logits, too. What is offloaded is not in memory.
std::int64_t kept_activation_bytes(const model::ModelShape& shape, ParameterKind precision,
                                   std::int64_t batch, std::int64_t sequence,
                                   const model::LayerActivations& activations);

}  // namespace sluice::shard
