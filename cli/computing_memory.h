#pragma once
// The memory that computing takes, for plans: of this computer's processor, of the device that a
// run names, or of the accelerators that a platform file models.
//
// Thread contract: main thread.

#include "core/tune/tier_memory.h"

namespace sluice::settings {
struct RunConfig;
}
namespace sluice::tune {
struct RecordedRun;
}

namespace sluice::cli {

// A machine that is only modelled: it has the platform's accelerators, each with a cap of
// accelerator_memory, and devices with memory of their own.
tune::MemoryModel modelled_memory();

// A run on this computer. Opens the device of the setting `device`. Errors:
// load_model_library()'s, and the factory's.
Result<tune::MemoryModel> memory_here(const settings::RunConfig& config);

// A recorded run: the modelled machine's, if it was simulated, else this computer's.
Result<tune::MemoryModel> memory_of(const tune::RecordedRun& run);

}  // namespace sluice::cli
