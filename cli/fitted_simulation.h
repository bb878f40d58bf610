#pragma once
// `sluice simulate --like RUN.db --fit`: what settings would do to a recorded run, before anybody
// applies them.
//
// Thread contract: main thread.

#include <string>
#include <vector>

#include "base/status.h"

namespace sluice::cli {

struct FittedSimulation {
  std::string database;
  std::vector<std::string> settings;  // simulated together; empty: every setting by itself
  bool json = false;
};

// Simulates, and prints the answer. A run of which nothing can be predicted yet is an answer; what
// cannot be read or set is an error.
Status simulate_fitted(const FittedSimulation& asked);

}  // namespace sluice::cli
