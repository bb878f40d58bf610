#pragma once
// The head of a calibrated platform file.
//
// Thread contract: free function.

#include "core/calibrate/calibration.h"

namespace sluice::calibrate {

MachineFacts machine_facts();

}  // namespace sluice::calibrate
