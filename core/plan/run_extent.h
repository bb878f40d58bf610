#pragma once
// How large a run may be: bounds of products of settings that are each within their own range, so
// that no count leaves 32 bits, no size 64, and nothing that walks over all of them never ends.
//
// Thread contract: free functions.

#include <cstdint>

#include "base/status.h"
#include "core/model/model_shape.h"
#include "core/settings/run_config.h"
#include "storage/state/state_layout.h"

namespace sluice::plan {

// A subgroup takes some hundred bytes of tables and a simulated step some twenty operations, so
// this many take seconds. A model of a trillion parameters has 238,419 of the default size.
inline constexpr std::int64_t kSubgroupsMax = 1 << 18;

// Forward and backward of a layer for a micro-batch: operations of a step, as subgroups are.
inline constexpr std::int64_t kLayerPassesMax = 1 << 20;

// The bytes that layers keep of a step: an exabyte. Sums of a run stay within 64 bits.
inline constexpr double kStepBytesMax = 1e18;

// batch, sequence, grad_accum_steps and what the model makes of them. Errors (ErrorCode::config)
// name them.
Status check_step_extent(const settings::BatchConfig& batch, const model::ModelShape& shape);

// ErrorCode::config with the smallest subgroup_elements that would do.
Status check_subgroup_count(const state::Geometry& geometry, const model::ModelShape& shape);

}  // namespace sluice::plan
