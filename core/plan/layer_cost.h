#pragma once
// What one layer's forward and backward cost on the platform's compute engine.
//
// Thread contract: plain data.

#include "base/units.h"

namespace sluice::plan {

struct LayerCost {
  TimeNs forward_ns = 0;
  TimeNs backward_ns = 0;
};

}  // namespace sluice::plan
