#pragma once
// The plan that an offload is put together by (assembly.h).
//
// Thread contract: plain data.

#include <cstdint>
#include <memory>

#include "base/id_vector.h"
#include "core/csd/device_memory.h"
#include "core/csd/drive.h"
#include "core/offload/base_cut.h"
#include "core/offload/offload_options.h"
#include "core/offload/state_versions.h"
#include "storage/state/state_layout.h"

namespace sluice::io {
class PinnedMemory;
}
namespace sluice::model {
struct FlatLayout;
}

namespace sluice::offload {

struct AssemblyPlan {
  OffloadOptions options;
  const platform::Platform* platform = nullptr;  // outlives the assembly, as the layout does
  const model::FlatLayout* layout = nullptr;
  state::Geometry geometry;
  // Which device updates each subgroup and gets its next version; empty: the one it lies on, which
  // options.state_cache_bytes do not go with.
  state::DeviceMap device_map;
  std::shared_ptr<const BaseCut> base = {};  // on the drives and not trained; null: none
  csd::DriveOptions drive;
  IdVector<DeviceId, std::int64_t> device_memory_bytes;  // budgets
  csd::Payload payload = csd::Payload::real;
  StateVersions::CommittedElsewhere committed_elsewhere = {};
  io::PinnedMemory* pinned_memory = nullptr;  // what an accelerator copies from and to; null: plain
};

}  // namespace sluice::offload
