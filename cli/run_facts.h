#pragma once
// What the run database says of a run before its first step: modes, versions, machine, devices,
// links, subgroups, and which links each track's bytes cross.
//
// Thread contract: free functions.

#include <string>

#include "core/train/training_run.h"
#include "profiler/collect/collector.h"

namespace sluice::cli {

// One line that names the modes that stand in for hardware (D8).
std::string mode_line(const train::TrainingRun& run);

collect::RunFacts run_facts(train::TrainingRun& run);

}  // namespace sluice::cli
