#pragma once
// Another plan for a run whose drives have become slower or faster (replanner.h): that of
// `sluice tune --placement`, of the knobs that can be turned while it is live.
//
// Thread contract: plain data and a free function, which works on copies.

#include <functional>
#include <string>
#include <vector>

#include "core/plan/run_plan.h"
#include "core/tune/tier_memory.h"

namespace sluice::tune {

// The part of a run that is planned again.
struct ReplanRequest {
  plan::RunPlan run;
  MemoryModel memory = {};
  double drive_factor = 1;           // on the rates of the drives in run.platform
  std::function<bool()> stops = {};  // the search ends early; may be empty
};

// The knobs to turn ("key=value") and what a step gains by it; no knobs: the plan stays.
struct Replan {
  std::vector<std::string> settings = {};
  double seconds_before = 0;  // of a step, predicted with the drives as they are now
  double seconds = 0;
};
// Errors: plan_tiers()'s.
Result<Replan> replan(const ReplanRequest& request);

}  // namespace sluice::tune
