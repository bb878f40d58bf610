#pragma once
// What a kernel costs on an engine: its launch, and its elements or FLOP at the engine's rate.
//
// Thread contract: free functions, any thread.

#include <algorithm>
#include <string>

#include "core/platform/platform.h"
#include "core/runtime/operation.h"

namespace sluice::runtime {

// `amount` in the unit of the engine's rate for that kernel. An engine without a rate for it is
// charged its launch only. A hundred days at most: what the cost model counts in 64 bits.
inline Cost kernel_cost(platform::EngineId id, const platform::Engine& engine,
                        const std::string& kernel, double amount) {
  Cost cost;
  cost.engine = id;
  cost.engine_dur_ns = engine.launch_ns;
  const auto rate = engine.rate.find(kernel);
  if (rate != engine.rate.end()) {
    cost.engine_dur_ns += static_cast<TimeNs>(std::min(amount / rate->second * 1e9, 8.64e15));
  }
  return cost;
}

}  // namespace sluice::runtime
