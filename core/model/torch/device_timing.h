#pragma once
// Measures a device with memory of its own through libtorch, as a run uses it: copies on a stream
// each way, products on a third. No header of libtorch.
//
// Thread contract: one thread; the device is opened by the call, once in a process.

#include "base/status.h"
#include "core/model/device_times.h"

namespace sluice::model {

// Errors: config for the name, not_found where there is no such device, with what to do.
Result<DeviceTimes> time_device(const DeviceTiming& timing);

}  // namespace sluice::model
