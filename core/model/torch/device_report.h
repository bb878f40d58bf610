#pragma once
// Asks libtorch what it can compute on here, without opening a device for good.
//
// Thread contract: one thread, before anything computes.

#include "core/model/device_report.h"

namespace sluice::model {

DeviceReport report_devices();

}  // namespace sluice::model
