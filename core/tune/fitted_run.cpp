#include "core/tune/fitted_run.h"

#include <utility>

#include "core/plan/run_plan.h"

namespace sluice::tune {

Result<FittedRun> fitted_to(RecordedRun run, const Stops& stops) {
  ASSIGN_OR_RETURN(PlatformFit fit,
                   fit_platform(run.config, run.model, run.platform, run.steps, stops));
  return FittedRun{std::move(run), std::move(fit)};
}

Result<plan::RunPlan> plan_with(const FittedRun& fitted, const std::vector<std::string>& overrides,
                                const std::string& option) {
  ASSIGN_OR_RETURN(const settings::RunConfig config,
                   recorded_config(fitted.run, overrides, option));
  return fitted.run.model.plan(config, fitted.fit.platform);
}

}  // namespace sluice::tune
