#pragma once
// The memory that a run's offload holds, for its record.
//
// Thread contract: the schedule's thread.

#include "base/units.h"
#include "core/offload/update_sites.h"

namespace sluice::runtime {
class RecordingSink;
}

namespace sluice::plan {

struct RunPlan;

// The memory that the offload's buffers take from now on, as counters of the recording.
void record_memory(runtime::RecordingSink& recording, const RunPlan& run,
                   const offload::UpdateSites& sites, TimeNs now_ns);

}  // namespace sluice::plan
