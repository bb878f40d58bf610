#pragma once
// Drives of one kind are never measured as exactly alike, and a simulation would make the one that
// came out slowest what every step waits for. Those that differ by less than the measurement can
// tell get figures in common, which several measurements also make truer.
//
// Thread contract: free function.

#include <vector>

#include "core/calibrate/calibration.h"

namespace sluice::calibrate {

// The largest difference, of the rates of a run's load and of the best ones, that counts as none.
inline constexpr double kAlikeWithin = 0.02;

// Gives drives that are alike the medians of their group: curve, latency, bursts. Returns a
// sentence for each group, by the drives' numbers in the platform file.
std::vector<std::string> pool_alike(std::vector<DriveFigures>& drives);

}  // namespace sluice::calibrate
