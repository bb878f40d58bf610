#include "core/tune/machine_tuning.h"

#include <algorithm>
#include <utility>

#include "base/nearest.h"
#include "core/simulate/simulation.h"
#include "core/tune/fitted_run.h"
#include "core/tune/plan_knobs.h"
#include "core/tune/tier_plan.h"

namespace sluice::tune {
namespace {

constexpr const char* kDeviceMap = "device_map";  // of a machine whose devices are not alike

}  // namespace

bool TuneChoice::is_held(const std::string& key) const {
  if (changeable && std::ranges::find(*changeable, key) == changeable->end()) return true;
  return std::ranges::find(held, key) != held.end();
}

Status check_held(const TuneChoice& choice, const std::string& option) {
  std::vector<std::string> keys;
  for (const TuneKnob& knob : tune_knobs({})) keys.push_back(knob.key);
  keys.emplace_back(kDeviceMap);
  for (const std::string& key : choice.held) {
    if (std::ranges::find(keys, key) != keys.end()) continue;
    return make_error(ErrorCode::config, "{} {}: nothing of that name is tuned{}; {} are", option,
                      key, did_you_mean(key, keys), fmt::join(keys, ", "));
  }
  return ok_status();
}

std::size_t TunedMachine::combination_count() const {
  std::size_t count = 1;
  for (const TuneKnob& knob : knobs) count *= knob.values.size();
  return count;
}

bool TunedMachine::changes(const std::string& key) const {
  return std::ranges::count(result.changes, key, &TuneChange::key) > 0;
}

MachineTuning::MachineTuning(ModelOnPlatform start, TuneChoice choice)
    : start_(std::move(start)), choice_(std::move(choice)) {}

MachineTuning::MachineTuning(FittedRun start, TuneChoice choice)
    : start_(std::make_shared<const FittedRun>(std::move(start))), choice_(std::move(choice)) {}

const FittedRun* MachineTuning::fitted_run() const {
  const auto* const start = std::get_if<std::shared_ptr<const FittedRun>>(&start_);
  return start == nullptr ? nullptr : start->get();
}

double MachineTuning::time_scale() const {
  return fitted_run() != nullptr ? fitted_run()->run.time_scale : 1;
}

Result<TunedMachine> MachineTuning::tuned() const { return tuned_from(choice_.overrides, 0); }

Result<std::vector<TunedMachine>> MachineTuning::tuned_for_devices(
    std::span<const std::string> counts) const {
  std::vector<TunedMachine> machines;
  for (const std::string& count : counts) {
    const double share = static_cast<double>(machines.size()) / static_cast<double>(counts.size());
    std::vector<std::string> overrides = choice_.overrides;
    overrides.push_back("devices=" + count);
    ASSIGN_OR_RETURN(machines.emplace_back(), tuned_from(overrides, share));
  }
  return machines;
}

Result<TunedMachine> MachineTuning::tuned_from(const std::vector<std::string>& overrides,
                                               double share) const {
  ASSIGN_OR_RETURN(TunedMachine tuned, knobs_tuned(overrides, share));
  if (!choice_.layers_under) return tuned;
  return layers_tuned(std::move(tuned), overrides, share);
}

// The layers with the knobs as they were tuned, and then the knobs again.
Result<TunedMachine> MachineTuning::layers_tuned(TunedMachine tuned,
                                                 std::vector<std::string> overrides,
                                                 double share) const {
  int tried_count = tuned.result.evaluation_count;
  PlanRequest request;
  request.plan_of = [&](const std::vector<std::string>& settings) {
    std::vector<std::string> all = overrides;
    for (const auto& [key, value] : tuned.result.best) all.push_back(key + "=" + value);
    all.insert(all.end(), settings.begin(), settings.end());
    return plan_of(std::move(all), {});
  };
  request.memory = *choice_.layers_under;
  for (const PlanKnob& row : plan_knobs()) request.held.emplace_back(row.key);
  request.on_try = [&](int /*count*/) {
    if (choice_.on_try) choice_.on_try(share, tried_count++);
  };
  ASSIGN_OR_RETURN(const TierPlan plan, plan_tiers(request));
  const PlannedSetting& layers = plan.settings.front();
  if (!layers.is_changed()) return tuned;
  overrides.push_back(layers.key + "=" + layers.value);
  ASSIGN_OR_RETURN(TunedMachine again, knobs_tuned(overrides, share));
  again.before = tuned.before;
  again.result.start_seconds = tuned.result.start_seconds;
  again.result.evaluation_count += tried_count;
  again.result.changes.insert(again.result.changes.begin(), {layers.key, layers.from, layers.value,
                                                             layers.worth_seconds.value_or(0)});
  return again;
}

// Without caps to keep to, what simulate_step() checks is all.
Status MachineTuning::check_memory(plan::RunPlan& run) const {
  if (!choice_.layers_under || tier_memory(run, *choice_.layers_under).fits()) return ok_status();
  return make_error(ErrorCode::memory, "these settings need more memory than the machine has");
}

Result<TunedMachine> MachineTuning::knobs_tuned(const std::vector<std::string>& overrides,
                                                double share) const {
  TunedMachine tuned;
  ASSIGN_OR_RETURN(const plan::RunPlan start, plan_of(overrides, {}));
  ASSIGN_OR_RETURN(tuned.before, simulate::simulate_step(start));
  tuned.knobs = knobs_of(start);
  int tried_count = 0;
  const auto plan_with_knobs = [&](const TuneSettings& tried) -> Result<plan::RunPlan> {
    RETURN_IF_ERROR(unless_stopped(choice_.stops, "tuning"));
    if (choice_.on_try) choice_.on_try(share, tried_count++);
    ASSIGN_OR_RETURN(plan::RunPlan run, plan_of(overrides, tried));
    RETURN_IF_ERROR(check_memory(run));
    return run;
  };
  ASSIGN_OR_RETURN(tuned.result, tune_simulated(tuned.knobs, start.config, plan_with_knobs));
  RETURN_IF_ERROR(unless_stopped(choice_.stops, "tuning"));
  ASSIGN_OR_RETURN(tuned.best, plan_of(overrides, tuned.result.best));
  ASSIGN_OR_RETURN(tuned.after, simulate::simulate_step(tuned.best));
  tuned.compact_seconds = compact_seconds(overrides, tuned);
  return tuned;
}

// A live run keeps its format.
std::optional<double> MachineTuning::compact_seconds(const std::vector<std::string>& overrides,
                                                     const TunedMachine& tuned) const {
  const bool may_change = !choice_.changeable && !choice_.is_held("state_format");
  if (!may_change || !settings::may_be_exact(tuned.best.config)) return std::nullopt;
  TuneSettings settings = tuned.result.best;
  settings["state_format"] = "compact";
  const Result<plan::RunPlan> run = plan_of(overrides, settings);
  if (!run.ok()) return std::nullopt;  // ranks that share parameters
  const Result<simulate::SimulatedStep> step = simulate::simulate_step(*run);
  return step.ok() ? std::optional(step->total_seconds) : std::nullopt;
}

std::vector<TuneKnob> MachineTuning::knobs_of(const plan::RunPlan& start) const {
  std::vector<TuneKnob> knobs = tune_knobs(start.config);
  if (choice_.density_min < 1) knobs.push_back(density_knob(choice_.density_min));
  if (const auto device_map = device_map_knob(start.platform)) knobs.push_back(*device_map);
  std::erase_if(knobs, [this](const TuneKnob& knob) { return choice_.is_held(knob.key); });
  return knobs;
}

Result<plan::RunPlan> MachineTuning::plan_of(std::vector<std::string> overrides,
                                             const TuneSettings& settings) const {
  for (const auto& [key, value] : settings) overrides.push_back(key + "=" + value);
  if (fitted_run() != nullptr) return plan_with(*fitted_run(), overrides);
  const ModelOnPlatform& start = std::get<ModelOnPlatform>(start_);
  ASSIGN_OR_RETURN(const settings::RunConfig config,
                   simulate::simulation_config(start.model, start.platform, overrides));
  return plan::plan_run(config);
}

const TunedMachine& best_buy(std::span<const TunedMachine> machines) {
  return *std::ranges::min_element(machines, {}, [](const TunedMachine& machine) {
    return machine.after.total_seconds * machine.best.platform.price_usd();
  });
}

}  // namespace sluice::tune
