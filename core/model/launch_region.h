#pragma once
// How whoever records a device learns which layer its work is for: around each launch a region is
// opened, on the thread that launches.
//
// Thread contract: called from any thread, from several at once; what it returns is destroyed on
// the thread that called.

#include <functional>
#include <memory>

#include "base/ids.h"

namespace sluice::model {

// The calling thread's requests to the device belong, until the returned object goes, to this
// layer; kNoLayer: to the step alone. Empty: nobody wants to know.
using LaunchRegion = std::function<std::shared_ptr<void>(LayerId)>;

}  // namespace sluice::model
