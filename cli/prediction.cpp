#include "cli/prediction.h"

#include <algorithm>
#include <array>

#include "core/train/run_plan.h"
#include "core/train/simulation.h"

namespace sluice::cli {
namespace {

constexpr const char* kOption = "predict";

// What a recording brings with it: another value would be that of another run.
constexpr std::array<std::string_view, 4> kRecorded = {"model", "platform", "clock", "time_scale"};

std::string key_of(const std::string& setting) { return setting.substr(0, setting.find('=')); }

std::string value_of(const train::RunConfig& config, const std::string& key) {
  for (const auto& [name, value] : train::setting_values(config)) {
    if (name == key) return value;
  }
  return "";
}

}  // namespace

Status check_predictable(const std::vector<std::string>& settings) {
  for (const std::string& setting : settings) {
    RETURN_IF_ERROR(train::check_setting(setting, kOption));
    if (std::ranges::find(kRecorded, key_of(setting)) == kRecorded.end()) continue;
    return make_error(ErrorCode::config,
                      "{} {}: the run's own is used, since the prediction rests on its steps; "
                      "`sluice simulate` takes any model and platform",
                      kOption, setting);
  }
  return ok_status();
}

Result<Predictor> Predictor::open(const std::string& database) {
  Predictor predictor;
  predictor.database_ = database;
  ASSIGN_OR_RETURN(predictor.run_, open_recorded_run({database, "", ""}));
  const RecordedRun& run = predictor.run_;
  ASSIGN_OR_RETURN(predictor.fit_,
                   train::fit_platform(run.config, run.shape, run.platform, run.steps));
  ASSIGN_OR_RETURN(predictor.simulated_seconds_, predictor.seconds_with({}));
  return predictor;
}

Result<double> Predictor::seconds_with(const std::vector<std::string>& settings) const {
  ASSIGN_OR_RETURN(const train::RunConfig config,
                   recorded_config(run_, database_, settings, kOption));
  ASSIGN_OR_RETURN(const train::RunPlan plan, train::plan_run(config, run_.shape, fit_.platform));
  ASSIGN_OR_RETURN(const train::SimulatedStep step, train::simulate_step(plan));
  return step.total_seconds;
}

Result<Prediction> Predictor::with(const std::vector<std::string>& settings) const {
  RETURN_IF_ERROR(check_predictable(settings));
  ASSIGN_OR_RETURN(const double seconds, seconds_with(settings));
  Prediction prediction;
  prediction.settings = settings;
  for (const std::string& setting : settings) {
    const std::string key = key_of(setting);
    prediction.from.push_back(key + "=" + value_of(run_.config, key));
  }
  prediction.seconds = seconds * run_.time_scale;
  prediction.change = seconds / simulated_seconds_ - 1;
  return prediction;
}

std::vector<Prediction> better_ones(const Predictor& predictor,
                                    const std::vector<analyze::Suggestion>& suggested) {
  std::vector<Prediction> better;
  for (const analyze::Suggestion& suggestion : suggested) {
    Result<Prediction> prediction = predictor.with({suggestion.setting});
    if (!prediction.ok()) continue;  // it does not fit the machine
    if (prediction->change > -kWorthSaying) continue;
    prediction->why = suggestion.why;
    better.push_back(std::move(*prediction));
  }
  std::ranges::sort(better, {}, &Prediction::change);
  return better;
}

Predictions predict(const std::string& database,
                    const std::vector<analyze::Suggestion>& suggested) {
  Predictions predictions;
  const Result<Predictor> predictor = Predictor::open(database);
  if (!predictor.ok()) {
    predictions.unavailable = predictor.error().message();
    return predictions;
  }
  predictions.fit_error = predictor->fit_error();
  predictions.better = better_ones(*predictor, suggested);
  return predictions;
}

}  // namespace sluice::cli
