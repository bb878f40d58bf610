#pragma once
// A model's memory as its blocks of activations alone, for plans in tests without libtorch: what
// stays, and of what leaves as much as is in memory at once.

#include <algorithm>
#include <numeric>

#include "core/model/kept_bytes.h"
#include "core/plan/run_plan.h"
#include "core/tune/tier_memory.h"

namespace sluice::tune {

inline std::int64_t block_bytes(const plan::RunPlan& run) {
  using model::Activations;
  std::int64_t kept_bytes = 0;
  std::int64_t moved_bytes = 0;
  std::int64_t widest_bytes = 0;
  for (const LayerId layer : all_ids<LayerId>(run.layout.layer_count())) {
    const Activations choice = run.config.arithmetic.activations.of(layer);
    const auto bytes_as = [&](Activations as) {
      const auto blocks =
          model::kept_block_bytes(run.shape, layer, run.config.batch.batch,
                                  run.config.batch.sequence, as, run.config.arithmetic.precision);
      return std::accumulate(blocks.begin(), blocks.end(), std::int64_t{0});
    };
    if (choice == Activations::keep) kept_bytes += bytes_as(Activations::offload);
    if (choice == Activations::recompute) kept_bytes += bytes_as(Activations::offload_inputs);
    moved_bytes += run.activations.layer_bytes(layer);
    widest_bytes = std::max(widest_bytes, run.activations.layer_bytes(layer));
  }
  return kept_bytes + std::min(moved_bytes, widest_bytes + run.activations.buffer_bytes);
}

// In the host's memory.
inline MemoryModel blocks_in_host_memory() {
  return {.computing = [](const plan::RunPlan& run) -> plan::ModelMemory {
    return {.host = {{"activations", block_bytes(run)}}};
  }};
}

// In that of a modelled accelerator; 0: as much as one likes.
inline MemoryModel blocks_on_accelerator(std::int64_t cap_bytes) {
  return {.computing = [cap_bytes](const plan::RunPlan& run) -> plan::ModelMemory {
    return {.host = {},
            .accelerator = "the accelerator",
            .on_accelerator = {{"activations", block_bytes(run)}},
            .accelerator_cap_bytes = cap_bytes};
  }};
}

}  // namespace sluice::tune
