#pragma once
// Whether the drives have room for a run's state, gradients and parameters where its device map
// puts them, and for activations that leave.
//
// Thread contract: free functions; may be called while the run is live.

#include <cstdint>
#include <span>
#include <string>

#include "base/id_vector.h"
#include "base/ids.h"
#include "base/status.h"

namespace sluice::plan {

struct RunPlan;

// The bytes that a plan puts on one device's drive.
struct DriveNeed {
  std::int64_t state_bytes = 0;  // two versions of its subgroups
  std::int64_t gradient_bytes = 0;
  std::int64_t activation_bytes = 0;  // of a step
  std::int64_t parameter_bytes = 0;   // parameter_tier=storage
  std::int64_t total_bytes() const {
    return state_bytes + gradient_bytes + activation_bytes + parameter_bytes;
  }
};
IdVector<DeviceId, DriveNeed> drive_needs(const RunPlan& plan);

// The capacity that the platform states for its drives; a size that is not stated is enough.
// ErrorCode::config: the first drive that is too small, with the numbers.
Status check_capacity(const RunPlan& plan);

// Also asks the file system. `state_files` are the files of the state, one a device; the gradients
// lie beside them. What subgroups leave behind is free only after the step that moves them, so both
// places are counted until then. `live`: the plan whose files of parameters give way, where a run
// changes; null: there are none. Errors: those of check_capacity(), and ErrorCode::config with the
// numbers for more than a file system has free.
Status check_drive_room(const RunPlan& wanted, std::span<const std::string> state_files,
                        const RunPlan* live = nullptr);

}  // namespace sluice::plan
