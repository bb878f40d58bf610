#pragma once
// The error when a subgroup's bytes are not those that were written: in the same words whether the
// processor compared the checksums or a device's kernel made them.
//
// Thread contract: free functions; the order lives until then.
// Errors: ErrorCode::corrupt, naming file, subgroup, variable and offset.

#include <cstdint>
#include <span>

#include "base/status.h"
#include "core/csd/update_task.h"

namespace sluice::csd {

Status check_gradient_chunk(const UpdateOrder& order, const GradientChunkCheck& chunk,
                            std::uint64_t found);
// `found`: checksums of the state as it was read, one for each of the rule's arrays.
Status check_state(const UpdateOrder& order, std::span<const std::uint64_t> found);
// The bytes are what was written, and what was written is no sparse gradient of this subgroup.
Error damaged_sparse_gradient(const UpdateOrder& order, const Error& why);

}  // namespace sluice::csd
