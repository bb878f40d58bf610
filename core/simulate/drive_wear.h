#pragma once
// How long drives last under what a simulated step writes to them, where the platform file says
// what they bear (`endurance`). With S the bytes that may be written to a drive in its life:
//
//   life in steps = S / bytes written in a step       life = life in steps x time of a step
//
// which is SSDTrain's formula. S is the owner's to say (docs/platform_format.md, "How long a drive
// lasts").
//
// Thread contract: plain data and free functions.

#include <cstdint>
#include <string>
#include <vector>

#include "core/platform/platform.h"
#include "core/simulate/simulated_step.h"

namespace sluice::simulate {

inline constexpr double kSecondsOfYear = 365.25 * 24 * 3600;

struct DriveWear {
  std::string drive;  // the device's name
  std::int64_t endurance_bytes = 0;
  std::int64_t written_bytes = 0;  // in a step, by the host and by the update engine
  double step_seconds = 0;

  // Both are infinite where a step writes nothing.
  double life_steps() const;
  double life_seconds() const { return life_steps() * step_seconds; }  // without a pause
};

// A row for each drive with an endurance, in the platform's order.
std::vector<DriveWear> drive_wear(const platform::Platform& platform, const SimulatedStep& step);

}  // namespace sluice::simulate
