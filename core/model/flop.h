#pragma once
// Floating-point operations of a layer, for the platform's cost of forward and backward. A
// multiply-add counts 2. Matrix products only: the rest (normalisation, activation, softmax) is
// below 1 % at the widths in sample_models/.
//
// Forward is the sum over the layer's products and attentions (core/model/architecture.h), with
// t = batch x sequence tokens: 2 x rows x in x out for a product, whose rows are tokens, patches or
// sequences; 4 x t x sequence x width for attention, scores and weighted values, half of it where
// tokens look back only.
//
// Backward is two products for each of forward's; one for the embedding's, since nobody asks for
// the gradient of pixels. A block that is recomputed goes forward once more. So does the head of
// core/model/torch, which makes the logits anew then; accelerators' frameworks keep them, and so it
// is counted.
//
// Where adapters are trained (core/model/lora.h), theirs are counted as a layer's own, and a matrix
// of the base has no product for a gradient of its own.
//
// Thread contract: free functions.

#include "core/model/activations.h"
#include "core/model/model_shape.h"

namespace sluice::model {

// One micro-batch of batch x sequence tokens through one layer.
double forward_flop(const ModelShape& shape, LayerId layer, std::int64_t batch,
                    std::int64_t sequence);
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
