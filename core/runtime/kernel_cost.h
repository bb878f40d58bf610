#pragma once
// The cost of a kernel on an engine: its launch, and its elements or FLOP at the engine's rate.
//
// Thread contract: free functions, any thread.

#include <algorithm>
#include <string>

#include "base/saturating.h"
#include "core/platform/platform.h"
#include "core/runtime/operation.h"

namespace sluice::runtime {

// A hundred days: the longest that the cost model counts in 64 bits.
inline constexpr TimeNs kLongestKernelNs = 8'640'000'000'000'000;

// `amount` in the unit of the engine's rate for that kernel. An engine without a rate for it is
// charged its launch only.
inline Cost kernel_cost(platform::EngineId id, const platform::Engine& engine,
                        const std::string& kernel, double amount) {
  Cost cost;
  cost.engine = id;
  cost.engine_dur_ns = engine.launch_ns;
  const auto rate = engine.rate.find(kernel);
  if (rate != engine.rate.end()) {
    cost.engine_dur_ns =
        std::min(saturating_sum(cost.engine_dur_ns, saturating_whole(amount / rate->second * 1e9)),
                 kLongestKernelNs);
  }
  return cost;
}

}  // namespace sluice::runtime
