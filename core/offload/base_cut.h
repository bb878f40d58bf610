#pragma once
// The base of adapters as it lies on the drives (base_parameters.h).
//
// Thread contract: plain data.

#include "core/model/flat_layout.h"
#include "storage/state/state_layout.h"

namespace sluice::offload {

// How weights that are not trained are cut into subgroups of their own, and dealt out to the
// drives: pieces of a bounce buffer each.
struct BaseCut {
  model::FlatLayout layout;
  state::Geometry geometry;
  state::DeviceMap device_map;
};

}  // namespace sluice::offload
