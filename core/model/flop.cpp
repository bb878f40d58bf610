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

double backward_flop(const ModelShape& shape, LayerId layer, std::int64_t batch,
                     std::int64_t sequence, Recompute recompute) {
  const double forward = forward_flop(shape, layer, batch, sequence);
  const bool again = recompute == Recompute::yes && index_of(layer) != shape.layers + 1;
  return (again ? 3 : 2) * forward;
}

}  // namespace sluice::model
