#pragma once
// Whether the drives have room for a run's state and gradients where its device map puts them.
//
// Thread contract: a free function; asks the file system, and may be called while the run goes on.

#include <span>
#include <string>

#include "core/plan/run_plan.h"

namespace sluice::plan {

// `state_files` are the files of the state, one a device; the gradients lie beside them. What
// subgroups leave behind is free only after the step that moves them, so both places are counted
// until then. ErrorCode::config with the numbers: more than the platform says that a device holds,
// or than its file system has free.
Status check_drive_room(const RunPlan& wanted, std::span<const std::string> state_files);

}  // namespace sluice::plan
