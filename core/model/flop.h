#pragma once
// Floating-point operations of a layer, for the platform's cost of forward and backward. A
// multiply-add counts 2. Causal attention is counted honestly: half the score matrix.
//
// Thread contract: free functions.

#include "core/model/activations.h"
#include "core/model/model_shape.h"

namespace sluice::model {

// One micro-batch of batch x sequence tokens through one layer, forward. Matrix products only: the
// rest (normalisation, activation, softmax) is below 1 % at the widths in sample_models/.
double forward_flop(const ModelShape& shape, LayerId layer, std::int64_t batch,
                    std::int64_t sequence);

// Backward is two products for each of forward's, and forward once more if it is recomputed.
double backward_flop(const ModelShape& shape, LayerId layer, std::int64_t batch,
                     std::int64_t sequence, Activations activations);

// Values that a layer handles one by one, outside of products: normalisation, activation, softmax,
// residuals, logits. What a processor, whose products are not that much faster, also spends time
// on.
double forward_elements(const ModelShape& shape, LayerId layer, std::int64_t batch,
                        std::int64_t sequence);
double backward_elements(const ModelShape& shape, LayerId layer, std::int64_t batch,
                         std::int64_t sequence, Activations activations);

}  // namespace sluice::model
