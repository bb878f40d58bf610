#pragma once
// The text of `sluice tune`.
//
// Thread contract: free functions.

#include <span>
#include <string>

#include "core/answers/tuning.h"

namespace sluice::cli {

std::string tune_text(const answers::TuningAnswer& answer, const tune::TunedMachine& tuned);

// A row for each number of devices.
std::string devices_text(const answers::TuningAnswer& answer,
                         std::span<const tune::TunedMachine> machines);

}  // namespace sluice::cli
