#pragma once
// A simulated step in the terms in which a recorded one is known, and what each kernel was charged.
//
// Thread contract: one call on one thread; deterministic.

#include <map>
#include <string>
#include <tuple>

#include "core/platform/platform.h"
#include "core/tune/recorded_steps.h"

namespace sluice::plan {
struct RunPlan;
}

namespace sluice::tune::detail {

// The same kernel in recorded and simulated steps.
using KernelKey = std::tuple<stages::Stage, LayerId, SubgroupId>;
inline KernelKey key_of(const OperationTimes& kernel) {
  return {kernel.stage, kernel.layer, kernel.subgroup};
}

struct KernelCharge {
  platform::EngineId engine{-1};
  double seconds = 0;  // of all of this key in all steps, launches included
  double count = 0;

  double mean_seconds() const { return seconds / count; }
};

struct ChargedStep {
  simulate::SimulatedStep step;
  RecordedSteps times;
  std::map<KernelKey, KernelCharge> kernels;
  // Seconds of the host processor's time a byte, for transfers that take some.
  std::map<std::pair<stages::Stage, DeviceId>, double> tolls;
};

Result<ChargedStep> simulate_charged(const plan::RunPlan& plan);

// A change of one rate: of a link ("read", "write") or an engine (a kernel).
struct RateFactor {
  std::string owner;
  std::string key;
  double factor = 1;
};

// Its chunk curve is part of a link's rate.
void scale_link(platform::Link& link, platform::Direction direction, double factor);
const char* direction_key(platform::Direction direction);

}  // namespace sluice::tune::detail
