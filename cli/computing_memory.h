#pragma once
// What computing takes of memory, for plans: of this computer's processor, of the device that a run
// names, or of the accelerators that a platform file models.
//
// Thread contract: main thread.

#include "core/tune/tier_memory.h"

namespace sluice::cli {

// Of a machine that is only modelled, with the platform's accelerators, if it has some, and memory
// of their own beside the devices' engines. Their cap is accelerator_memory, of each.
tune::MemoryModel modelled_memory();

// Of a run on this computer. Opens the device of the setting `device`. Errors: gpt2_factory()'s.
Result<tune::MemoryModel> memory_here(const settings::RunConfig& config);

}  // namespace sluice::cli
