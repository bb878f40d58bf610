#pragma once
// The text and JSON of `sluice tune --placement`.
//
// Thread contract: free functions.

#include <string>
#include <vector>

#include "core/tune/tier_plan.h"

namespace sluice::cli {

struct PlanReport {
  const tune::TierPlan& plan;
  std::string command;                 // to which the planned settings are added
  std::vector<std::string> overrides;  // "key=value" that the plan began with
  double time_scale = 1;               // simulated times this are by the run's clock
  bool is_fitted = false;              // the platform was fitted to a recorded run
};

std::string plan_text(const PlanReport& report);
std::string plan_json(const PlanReport& report);

}  // namespace sluice::cli
