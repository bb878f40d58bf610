#pragma once
// The host's instructions for gradient work on an accelerator (gradient_work=accelerator): which
// elements are selected from which, and what is summed for a subgroup's norm (norm_plan.h), in the
// words of core/model/gradient_device.h.
//
// Thread contract: a free function.

#include "core/model/flat_layout.h"
#include "core/model/gradient_device.h"
#include "core/offload/offload_options.h"
#include "storage/state/state_layout.h"

namespace sluice::offload {

// No segments where gradients are dense; no parts but with overlap=local.
model::DeviceSelection device_selection(const OffloadOptions& options,
                                        const model::FlatLayout& layout,
                                        const state::Geometry& geometry);

}  // namespace sluice::offload
