#include "core/model/flop.h"

namespace sluice::model {

double forward_flop(const ModelShape& shape, LayerId layer, std::int64_t batch,
                    std::int64_t sequence) {
  const auto tokens = static_cast<double>(batch * sequence);
  const auto hidden = static_cast<double>(shape.hidden);
  if (index_of(layer) == 0) return 0;  // table look-ups
  if (index_of(layer) == shape.layers + 1) {
    return 2 * tokens * hidden * static_cast<double>(shape.vocabulary);
  }
  // qkv 3h^2, projection h^2, two of 4h^2 in the MLP; scores and weighted values h each a position,
  // over half the positions.
  const double products = 2 * tokens * 12 * hidden * hidden;
  const double attention = 2 * tokens * static_cast<double>(sequence) * hidden;
  return products + attention;
}

double forward_elements(const ModelShape& shape, LayerId layer, std::int64_t batch,
                        std::int64_t sequence) {
  const auto tokens = static_cast<double>(batch * sequence);
  const auto hidden = static_cast<double>(shape.hidden);
  if (index_of(layer) == 0) return tokens * hidden;
  if (index_of(layer) == shape.layers + 1) {
    return tokens * (static_cast<double>(shape.vocabulary) + 2 * hidden);
  }
  // The widths that a block keeps for its backward (core/model/gpt2/gpt2_memory.cpp counts them),
  // and half the scores.
  return tokens *
         (19 * hidden + static_cast<double>(shape.heads) * static_cast<double>(sequence) / 2);
}

double backward_elements(const ModelShape& shape, LayerId layer, std::int64_t batch,
                         std::int64_t sequence, Activations activations) {
  const double forward = forward_elements(shape, layer, batch, sequence);
  // The head makes the logits' gradient in one pass. What a layer leaves are gradients of its
  // parameters, copied; a copied value takes about a quarter of one that is computed (gpt2-124m's
  // tables: 39 million in 7 ms).
  if (index_of(layer) == shape.layers + 1) return forward;
  if (index_of(layer) == 0) {
    return static_cast<double>((shape.vocabulary + shape.sequence) * shape.hidden) / 4;
  }
  const double copied = static_cast<double>(12 * shape.hidden * shape.hidden) / 4;
  return (activations == Activations::recompute ? 3 : 2) * forward + copied;
}

double backward_flop(const ModelShape& shape, LayerId layer, std::int64_t batch,
                     std::int64_t sequence, Activations activations) {
  const double forward = forward_flop(shape, layer, batch, sequence);
  const bool again = activations == Activations::recompute && index_of(layer) != shape.layers + 1;
  return (again ? 3 : 2) * forward;
}

}  // namespace sluice::model
