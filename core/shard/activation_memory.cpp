#include "core/shard/activation_memory.h"

#include <algorithm>
#include <numeric>

#include "core/model/architecture.h"
#include "core/model/kept_bytes.h"
#include "core/model/layer_places.h"

namespace sluice::shard {

std::int64_t kept_activation_bytes(const model::ModelShape& shape, ParameterKind precision,
                                   std::int64_t batch, std::int64_t sequence,
                                   const model::LayerActivations& activations) {
  std::int64_t kept_bytes =
      batch * sequence *
      needed_bytes(model::architecture_of(shape).embedding.made(shape), precision);
  std::int64_t widest_anew_bytes = 0;
  const std::int32_t layer_count = shape.flat_layout().layer_count();
  for (std::int32_t l = 0; l < layer_count; ++l) {
    const LayerId layer{l};
    const auto bytes_as = [&](model::Activations as_if) {
      const auto blocks = model::kept_block_bytes(shape, layer, batch, sequence, as_if, precision);
      return std::accumulate(blocks.begin(), blocks.end(), std::int64_t{0});
    };
    std::int64_t all_bytes = bytes_as(model::Activations::offload);
    all_bytes += layer_tokens(shape, layer, batch, sequence).own * logit_count(shape, layer) *
                 bytes_of(precision);
    const model::Activations choice = activations.of(layer);
    if (choice == model::Activations::keep) kept_bytes += all_bytes;
    if (!model::is_recomputed(choice)) continue;
    widest_anew_bytes = std::max(widest_anew_bytes, all_bytes);
    if (choice == model::Activations::recompute) {
      kept_bytes += bytes_as(model::Activations::offload_inputs);
    }
  }
  return kept_bytes + widest_anew_bytes;
}

}  // namespace sluice::shard
