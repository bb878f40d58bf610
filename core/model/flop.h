#pragma once
// Floating-point operations of a layer, for the platform's cost of forward and backward. A
// multiply-add counts 2. Matrix products only: the rest (normalisation, activation, softmax) is
// below 1 % at the widths in sample_models/.
//
// Forward, with t = batch x sequence tokens, s = sequence, h = hidden:
//
//   embedding  all but vit        0: tables are looked up
//              vit                2 (t - batch) (channels x patch^2) h: each patch, projected
//   block      all but llama      2 t (3 h^2 + h^2 + 4 h^2 + 4 h^2): query-key-value, projection
//                                 and the two of the MLP
//              llama              2 t h (2 a + 2 kv + 3 ffn): query and projection of width a =
//                                 heads x head_dim, key and value of width kv = kv_heads x
//                                 head_dim, the three of the MLP
//              gpt2, bloom, llama + 2 t s a, where a = h but for llama: scores and weighted
//                                 values, of half the pairs, since a token looks back only
//              bert, vit          + 4 t s h: of all pairs
//   head       gpt2, bloom, llama 2 t h vocabulary
//              bert               2 t (h^2 + h vocabulary) + 2 batch (h^2 + 2 h): transform and
//                                 logits of every token, as Hugging Face computes them, though
//                                 only the masked ones (15 %) count in the loss; pooler and
//                                 next-sentence answer of the first
//              vit                2 batch h classes: of the class token only
//
// Backward is two products for each of forward's; one for the embedding's, since nobody asks for
// the gradient of pixels. A block that is recomputed goes forward once more. So does the head of
// core/model/gpt2, which makes the logits anew then; accelerators' frameworks keep them, and so it
// is counted.
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
