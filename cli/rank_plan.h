#pragma once
// `sluice tune --placement --ranks 4x2 MODEL --platform CLUSTER`: over which ranks everything is
// sharded, what layers keep and where the state lies, found by simulated steps
// (core/simulate/simulated_plan.h).
//
// Thread contract: main thread.

#include <string>
#include <vector>

#include "base/status.h"

namespace sluice::cli {

struct RankPlanArguments {
  std::string model;
  std::string platform;
  std::string ranks;
  std::string state;  // memory or drives; empty: whichever is shorter
  std::vector<std::string> overrides;
  std::vector<std::string> held;
  int simulations = 600;
  bool json = false;
};

// Plans, and prints the answer.
Status plan_ranks(const RankPlanArguments& arguments);

}  // namespace sluice::cli
