#include "core/tune/prediction.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/setting_text.h"
#include "core/control/knob.h"
#include "core/plan/run_plan.h"
#include "core/simulate/simulation.h"

namespace sluice::tune {
namespace {

constexpr const char* kOption = "--set";

// The settings that a recording brings with it: another value would be that of another run.
constexpr std::array<std::string_view, 4> kRecorded = {"model", "platform", "clock", "time_scale"};

// A value takes the place of a nearer one only if it gains so much more of a step.
constexpr double kWorthFurther = 0.002;

std::vector<std::string> texts_of(const TuneSettings& settings) {
  std::vector<std::string> texts;
  for (const auto& [key, value] : settings) texts.push_back(key + "=" + value);
  return texts;
}

}  // namespace

Status check_predictable(const std::vector<std::string>& settings) {
  for (const std::string& setting : settings) {
    RETURN_IF_ERROR(settings::check_setting(setting, kOption));
    if (std::ranges::find(kRecorded, key_of(setting)) == kRecorded.end()) continue;
    return make_error(ErrorCode::config,
                      "{} {}: the run's own is used, since the prediction rests on its steps; "
                      "`sluice simulate` takes any model and platform",
                      kOption, setting);
  }
  return ok_status();
}

Result<Predictor> Predictor::open(const std::string& database, Stops stops) {
  Predictor predictor;
  predictor.stops_ = std::move(stops);
  ASSIGN_OR_RETURN(RecordedRun run, open_recorded_run({database, "", ""}));
  ASSIGN_OR_RETURN(predictor.fitted_, fitted_to(std::move(run), predictor.stops_));
  ASSIGN_OR_RETURN(predictor.simulated_seconds_, predictor.seconds_with({}));
  return predictor;
}

std::string Predictor::value_now(const std::string& setting) const {
  return settings::value_of(fitted_.run.config, key_of(setting));
}

Result<double> Predictor::seconds_with(const std::vector<std::string>& settings) const {
  RETURN_IF_ERROR(unless_stopped(stops_, "predicting"));
  ASSIGN_OR_RETURN(const plan::RunPlan plan, plan_with(fitted_, settings, kOption));
  ASSIGN_OR_RETURN(const simulate::SimulatedStep step, simulate::simulate_step(plan));
  return step.total_seconds;
}

Result<Prediction> Predictor::with(const std::vector<std::string>& settings) const {
  RETURN_IF_ERROR(check_predictable(settings));
  ASSIGN_OR_RETURN(const double seconds, seconds_with(settings));
  return prediction_of(settings, seconds);
}

Prediction Predictor::prediction_of(const std::vector<std::string>& settings,
                                    double seconds) const {
  Prediction prediction;
  prediction.settings = settings;
  for (const std::string& setting : settings) {
    const std::string key = key_of(setting);
    const std::string now = value_now(key);
    prediction.from.push_back(key + "=" + now);
    if (needs_new_run(key)) prediction.needs_new_run = true;
    const bool is_other_method = key == "method" && value_of(setting) != now;
    if (is_other_method && !fitted_.run.is_simulated) prediction.rests_on_file = true;
  }
  prediction.seconds = seconds * fitted_.run.time_scale;
  prediction.change = seconds / simulated_seconds_ - 1;
  return prediction;
}

// A simulated run is only ever simulated again.
bool Predictor::needs_new_run(const std::string& key) const {
  if (fitted_.run.is_simulated) return false;
  return std::ranges::count(settings::knobs(fitted_.run.config), key, &control::Knob::key) == 0;
}

Result<Predictions> Predictor::all() const {
  ASSIGN_OR_RETURN(const plan::RunPlan plan, plan_with(fitted_, {}, kOption));
  Predictions all;
  for (const TuneKnob& knob : single_changes(plan, std::ssize(fitted_.run.platform.devices))) {
    if (auto best = best_of(knob, all.simulated_count)) all.each.push_back(*std::move(best));
  }
  std::ranges::stable_sort(all.each, {}, &Prediction::change);
  all.together = best_together(plan);
  RETURN_IF_ERROR(unless_stopped(stops_, "predicting"));
  return all;
}

// None: the machine can take none of the values.
std::optional<Prediction> Predictor::best_of(const TuneKnob& knob, int& count) const {
  std::optional<Prediction> best;
  for (const std::string& value : knob.values) {
    const std::string setting = knob.key + "=" + value;
    const Result<double> seconds = seconds_with({setting});
    if (!seconds.ok()) continue;
    count += 1;
    Prediction prediction = prediction_of({setting}, *seconds);
    if (best && prediction.change > best->change - kWorthFurther) continue;
    best = std::move(prediction);
  }
  return best;
}

// As `sluice tune --hold subgroup_elements` finds it: a state that exists keeps its subgroups.
std::optional<Prediction> Predictor::best_together(const plan::RunPlan& plan) const {
  std::vector<TuneKnob> knobs = tune_knobs(plan.config);
  std::erase_if(knobs, [](const TuneKnob& knob) { return knob.key == "subgroup_elements"; });
  if (const auto device_map = device_map_knob(plan.platform)) knobs.push_back(*device_map);
  const auto tuned = tune_simulated(knobs, plan.config,
                                    [this](const TuneSettings& tried) -> Result<plan::RunPlan> {
                                      RETURN_IF_ERROR(unless_stopped(stops_, "predicting"));
                                      return plan_with(fitted_, texts_of(tried), kOption);
                                    });
  if (!tuned.ok()) return std::nullopt;
  std::vector<std::string> settings;
  for (const TuneChange& change : tuned->changes) {
    settings.push_back(change.key + "=" + change.to);
  }
  return prediction_of(settings, tuned->best_seconds);
}

}  // namespace sluice::tune
