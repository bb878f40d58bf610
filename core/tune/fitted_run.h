#pragma once
// A recorded run together with the machine as the run's steps show it.
//
// Thread contract: plain data and free functions.

#include <string>
#include <vector>

#include "core/tune/platform_fit.h"
#include "core/tune/recorded_run.h"

namespace sluice::plan {
struct RunPlan;
}

namespace sluice::tune {

struct FittedRun {
  RecordedRun run;
  PlatformFit fit;
};

// Errors: those of fit_platform().
Result<FittedRun> fitted_to(RecordedRun run, const Stops& stops = {});

// The run with `overrides` over its settings, on the fitted platform. Errors: those of
// recorded_config() and plan_run().
Result<plan::RunPlan> plan_with(const FittedRun& fitted, const std::vector<std::string>& overrides,
                                const std::string& option = "--set");

}  // namespace sluice::tune
