#pragma once
// The text and JSON of `sluice tune --placement --ranks`.
//
// Thread contract: free functions.

#include <string>

#include "core/simulate/simulated_plan.h"

namespace sluice::cli {

struct RankPlanReport {
  const simulate::SimulatedPlanRequest& request;
  const simulate::SimulatedPlan& plan;
  std::string command;  // to which what was planned is added
};

std::string rank_plan_text(const RankPlanReport& report);
std::string rank_plan_json(const RankPlanReport& report);

}  // namespace sluice::cli
