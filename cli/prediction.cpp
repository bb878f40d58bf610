#include "cli/prediction.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/setting_text.h"
#include "core/plan/run_plan.h"
#include "core/simulate/simulation.h"

namespace sluice::cli {
namespace {

constexpr const char* kOption = "predict";

// What a recording brings with it: another value would be that of another run.
constexpr std::array<std::string_view, 4> kRecorded = {"model", "platform", "clock", "time_scale"};

// A value takes the place of a nearer one only if it gains so much more of a step.
constexpr double kWorthFurther = 0.002;

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

Result<Predictor> Predictor::open(const std::string& database) {
  Predictor predictor;
  predictor.database_ = database;
  ASSIGN_OR_RETURN(predictor.run_, open_recorded_run({database, "", ""}));
  const RecordedRun& run = predictor.run_;
  ASSIGN_OR_RETURN(predictor.fit_,
                   tune::fit_platform(run.config, run.shape, run.platform, run.steps));
  ASSIGN_OR_RETURN(predictor.simulated_seconds_, predictor.seconds_with({}));
  return predictor;
}

Result<double> Predictor::seconds_with(const std::vector<std::string>& settings) const {
  ASSIGN_OR_RETURN(const settings::RunConfig config,
                   recorded_config(run_, database_, settings, kOption));
  ASSIGN_OR_RETURN(const plan::RunPlan plan, plan::plan_run(config, run_.shape, fit_.platform));
  ASSIGN_OR_RETURN(const simulate::SimulatedStep step, simulate::simulate_step(plan));
  return step.total_seconds;
}

Result<analyze::PredictedChange> Predictor::with(const std::vector<std::string>& settings) const {
  RETURN_IF_ERROR(check_predictable(settings));
  ASSIGN_OR_RETURN(const double seconds, seconds_with(settings));
  return change_of(settings, seconds);
}

analyze::PredictedChange Predictor::change_of(const std::vector<std::string>& settings,
                                              double seconds) const {
  analyze::PredictedChange change;
  change.settings = settings;
  for (const std::string& setting : settings) {
    const std::string key = key_of(setting);
    change.from.push_back(key + "=" + settings::value_of(run_.config, key));
    change.needs_new_run = change.needs_new_run || needs_new_run(key);
  }
  change.seconds = seconds * run_.time_scale;
  change.change = seconds / simulated_seconds_ - 1;
  return change;
}

// A simulated run is only ever simulated again.
bool Predictor::needs_new_run(const std::string& key) const {
  if (run_.is_simulated) return false;
  return std::ranges::count(settings::knobs(run_.config), key, &control::Knob::key) == 0;
}

analyze::PredictedChanges Predictor::all() const {
  analyze::PredictedChanges all;
  all.fit_error = fit_error();
  const auto plan = plan::plan_run(run_.config, run_.shape, fit_.platform);
  if (!plan.ok()) {
    all.unavailable = plan.error().message();
    return all;
  }
  for (const tune::TuneKnob& knob :
       tune::single_changes(*plan, std::ssize(run_.platform.devices))) {
    auto best = best_of(knob, all.simulated_count);
    if (best.ok()) all.each.push_back(*std::move(best));
  }
  std::ranges::stable_sort(all.each, {}, &analyze::PredictedChange::change);
  all.together = best_together(*plan);
  return all;
}

// An error: the machine can take none of the values.
Result<analyze::PredictedChange> Predictor::best_of(const tune::TuneKnob& knob, int& count) const {
  Result<analyze::PredictedChange> best =
      make_error(ErrorCode::config, "{}: no value fits the machine", knob.key);
  for (const std::string& value : knob.values) {
    const std::string setting = knob.key + "=" + value;
    const Result<double> seconds = seconds_with({setting});
    if (!seconds.ok()) continue;
    count += 1;
    analyze::PredictedChange change = change_of({setting}, *seconds);
    if (best.ok() && change.change > best->change - kWorthFurther) continue;
    change.why = analyze::why_words(setting, settings::value_of(run_.config, knob.key));
    if (knob.key == "method" && !run_.is_simulated) {
      change.why += fmt::format(
          "; {} was not run in these steps, so its own figures are the platform file's", setting);
    }
    best = std::move(change);
  }
  return best;
}

// As `sluice tune --hold subgroup_elements` finds it: a state that exists keeps its subgroups.
std::optional<analyze::PredictedChange> Predictor::best_together(const plan::RunPlan& plan) const {
  std::vector<tune::TuneKnob> knobs = tune::tune_knobs();
  std::erase_if(knobs, [](const tune::TuneKnob& knob) { return knob.key == "subgroup_elements"; });
  if (const auto device_map = tune::device_map_knob(plan.platform)) knobs.push_back(*device_map);
  tune::TuneSettings start;
  for (const tune::TuneKnob& knob : knobs)
    start[knob.key] = settings::value_of(run_.config, knob.key);
  const auto tuned =
      tune::tune(knobs, start, [&](const tune::TuneSettings& tried) -> Result<double> {
        std::vector<std::string> settings;
        for (const auto& [key, value] : tried) settings.push_back(key + "=" + value);
        const Result<double> seconds = seconds_with(settings);
        return seconds.ok() ? *seconds : std::numeric_limits<double>::infinity();
      });
  if (!tuned.ok()) return std::nullopt;
  std::vector<std::string> settings;
  for (const tune::TuneChange& change : tuned->changes) {
    settings.push_back(change.key + "=" + change.to);
  }
  return change_of(settings, tuned->best_seconds);
}

analyze::PredictedChanges predict(const std::string& database) {
  const Result<Predictor> predictor = Predictor::open(database);
  if (predictor.ok()) return predictor->all();
  analyze::PredictedChanges none;
  none.unavailable = predictor.error().message();
  return none;
}

}  // namespace sluice::cli
