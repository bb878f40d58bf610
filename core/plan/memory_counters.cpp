#include "core/plan/memory_counters.h"

#include <cstdint>
#include <vector>

#include "core/offload/update_site.h"
#include "core/plan/memory_plan.h"
#include "core/runtime/recording.h"

namespace sluice::plan {

void record_memory(runtime::RecordingSink& recording, const RunPlan& run,
                   const offload::UpdateSites& sites, TimeNs now_ns) {
  std::vector<std::int64_t> device_bytes;
  for (const auto& site : sites) device_bytes.push_back(site->device_memory_used_bytes());
  recording.record_memory(offload_host_bytes(run), device_bytes, now_ns);
}

}  // namespace sluice::plan
