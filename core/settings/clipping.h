#pragma once
// By which norm a run clips: that of all gradients, or with overlap=local each subgroup by its own.
//
// Thread contract: a free function.

#include "core/settings/run_config.h"

namespace sluice::settings {

// Whether the run has other numbers than with overlap=off. Which subgroups it has matters for them
// then, too. Where nothing is clipped overlap=local changes none.
inline bool is_clipped_by_subgroup(const RunConfig& config) {
  return config.offload.overlap == offload::Overlap::local && config.arithmetic.max_grad_norm > 0;
}

}  // namespace sluice::settings
