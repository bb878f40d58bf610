#pragma once
// An operation in words, for messages: "update of subgroup 3 on device 1".
//
// Thread contract: free functions.

#include <string>

#include "core/runtime/operation.h"

namespace sluice::runtime {

// " of subgroup 3 of layer 2 on device 1", without what is none.
std::string owner_text(DeviceId device, SubgroupId subgroup, LayerId layer);
std::string label_text(const OperationLabel& label);

}  // namespace sluice::runtime
