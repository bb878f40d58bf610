#include "cli/prediction.h"

#include <algorithm>

#include "cli/recorded_run.h"
#include "core/train/platform_fit.h"
#include "core/train/run_plan.h"
#include "core/train/simulation.h"

namespace sluice::cli {
namespace {

Result<double> simulated_seconds(const RecordedRun& run, const train::PlatformFit& fit,
                                 const std::string& database,
                                 const std::vector<std::string>& settings) {
  ASSIGN_OR_RETURN(const train::RunConfig config, recorded_config(run, database, settings));
  ASSIGN_OR_RETURN(const train::RunPlan plan, train::plan_run(config, run.shape, fit.platform));
  ASSIGN_OR_RETURN(const train::SimulatedStep step, train::simulate_step(plan));
  return step.total_seconds;
}

std::string value_of(const train::RunConfig& config, const std::string& key) {
  for (const auto& [name, value] : train::setting_values(config)) {
    if (name == key) return value;
  }
  return "";
}

}  // namespace

Predictions predict(const std::string& database,
                    const std::vector<analyze::Suggestion>& suggested) {
  Predictions predictions;
  const Result<RecordedRun> run = open_recorded_run({database, "", ""});
  if (!run.ok()) {
    predictions.unavailable = run.error().message();
    return predictions;
  }
  const Result<train::PlatformFit> fit =
      train::fit_platform(run->config, run->shape, run->platform, run->steps);
  const Result<double> now =
      fit.ok() ? simulated_seconds(*run, *fit, database, {}) : Result<double>(fit.error());
  if (!now.ok()) {
    predictions.unavailable = now.error().message();
    return predictions;
  }
  predictions.fit_error = fit->step.error_after();
  for (const analyze::Suggestion& suggestion : suggested) {
    const Result<double> seconds = simulated_seconds(*run, *fit, database, {suggestion.setting});
    if (!seconds.ok()) continue;  // it does not fit the machine
    const double change = *seconds / *now - 1;
    if (change > -kWorthSaying) continue;
    const std::string key = suggestion.setting.substr(0, suggestion.setting.find('='));
    predictions.better.push_back(
        {suggestion, value_of(run->config, key), *seconds * run->time_scale, change});
  }
  std::ranges::sort(predictions.better, {}, &Prediction::change);
  return predictions;
}

}  // namespace sluice::cli
