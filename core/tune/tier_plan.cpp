#include "core/tune/tier_plan.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "base/figure_text.h"
#include "base/nearest.h"
#include "core/simulate/simulation.h"
#include "core/tune/known_plans.h"
#include "core/tune/layer_problem.h"
#include "core/tune/plan_knobs.h"
#include "core/tune/tuning.h"

namespace sluice::tune {
namespace {

using model::Activations;

constexpr const char* kActivations = "activations";
constexpr const char* kWhatActivations = "what layers keep for backward";
// Where everything may be kept, something else must gain so much of a step: less is the chance of
// how operations fall.
constexpr double kWorthMoving = 0.02;
constexpr int kRoundsMax = 4;
// One search of the layers may take this share of the simulations that are left.
constexpr double kShareOfLayers = 0.6;

std::vector<std::string> overrides_of(const TuneSettings& settings) {
  std::vector<std::string> overrides;
  for (const auto& [key, value] : settings) overrides.push_back(key + "=" + value);
  return overrides;
}

class Planner {
 public:
  explicit Planner(const PlanRequest& request) : request_(request) {}

  Result<TierPlan> plan() {
    RETURN_IF_ERROR(begin());
    RETURN_IF_ERROR(search());
    if (best_seconds_ == kForEver) return nothing_fits();
    prefer_keeping();
    drop_what_is_worth_nothing();
    return described();
  }

 private:
  struct Tried {
    plan::RunPlan run;
    TierMemory memory;
  };

  bool stops() const { return request_.stops && request_.stops(); }
  bool is_held(const std::string& key) const {
    return std::ranges::find(request_.held, key) != request_.held.end();
  }

  Status begin() {
    ASSIGN_OR_RETURN(const plan::RunPlan start, request_.plan_of({}));
    layers_ = unknown_layers(start.layout.layer_count());
    start_[kActivations] = settings::value_of(start.config, kActivations);
    for (const PlanKnob& row : plan_knobs()) {
      start_[row.key] = settings::value_of(start.config, row.key);
      TuneKnob knob{row.key, row.values(start, request_.commit_every_max)};
      if (!is_held(row.key) && !knob.values.empty()) knobs_.push_back(std::move(knob));
    }
    start_seconds_ = best_seconds_ = seconds(start_);
    best_ = start_;
    return ok_status();
  }

  // With these settings; state_cache=auto is a number then.
  Result<Tried> tried(const TuneSettings& settings) const {
    ASSIGN_OR_RETURN(plan::RunPlan run, request_.plan_of(overrides_of(settings)));
    TierMemory memory = tier_memory(run, request_.memory);
    return Tried{std::move(run), std::move(memory)};
  }

  // A step's; infinite where it does not fit, or the search is to stop.
  double seconds(const TuneSettings& settings) {
    const auto known = known_.find(settings);
    if (known != known_.end()) return known->second;
    const auto tried = this->tried(settings);
    const double found = !tried.ok() || !tried->memory.fits() ? kForEver : simulated(tried->run);
    if (!stops()) known_.emplace(settings, found);
    return found;
  }

  double simulated(const plan::RunPlan& run) {
    if (stops()) return kForEver;
    simulated_count_ += 1;
    if (request_.on_try) request_.on_try(simulated_count_);
    const auto step = simulate::simulate_step(run);
    return step.ok() ? step->total_seconds : kForEver;
  }

  int simulations_left() const { return simulations_end_ - simulated_count_; }

  // One from the settings as they are, and one from each way to give the memory that activations
  // compete for to something else first.
  Status search() {
    const std::vector<TuneSettings> starts = search_starts();
    TuneSettings best = best_;
    double best_seconds = best_seconds_;
    bool is_exhaustive = false;
    for (std::size_t i = 0; i < starts.size() && !stops(); ++i) {
      simulations_end_ =
          request_.simulations_max * static_cast<int>(i + 1) / static_cast<int>(starts.size());
      best_ = starts[i];
      best_seconds_ = seconds(best_);
      RETURN_IF_ERROR(search_from_here(i == 0));
      if (best_seconds_ >= best_seconds && (i > 0 || best_seconds_ == kForEver)) continue;
      best = best_;
      best_seconds = best_seconds_;
      is_exhaustive = is_exhaustive_;
    }
    if (best_seconds < kForEver) best_ = best;  // else what takes the least, for nothing_fits()
    best_seconds_ = best_seconds;
    is_exhaustive_ = is_exhaustive;
    return ok_status();
  }

  std::vector<TuneSettings> search_starts() const {
    std::vector<TuneSettings> starts = {start_};
    for (const PlanKnob& row : plan_knobs()) {
      const auto knob = std::ranges::find(knobs_, row.key, &TuneKnob::key);
      if (!row.competes || knob == knobs_.end()) continue;
      const std::size_t count = starts.size();
      for (std::size_t i = 0; i < count; ++i) {
        for (const std::string& value : knob->values) {
          TuneSettings other = starts[i];
          if (std::exchange(other[row.key], value) != value) starts.push_back(std::move(other));
        }
      }
    }
    // A value that no run takes with the others as they are, such as gradients in memory with
    // method=csd.
    std::erase_if(starts, [this](const TuneSettings& settings) { return !tried(settings).ok(); });
    return starts;
  }

  Status search_from_here(bool may_use_least) {
    for (int round = 0; round < kRoundsMax && simulations_left() > 0 && !stops(); ++round) {
      const double before = best_seconds_;
      if (!is_held(kActivations)) RETURN_IF_ERROR(turn_layers());
      if (best_seconds_ == kForEver) {
        if (!std::exchange(may_use_least, false)) break;
        use_least_memory();
        continue;
      }
      RETURN_IF_ERROR(turn_knobs());
      if (best_seconds_ >= before * (1 - kWorthwhile)) break;
    }
    return ok_status();
  }

  // Nothing fits with the settings as they are: from those that take the least memory on.
  void use_least_memory() {
    for (const PlanKnob& row : plan_knobs()) {
      const bool is_turned = std::ranges::count(knobs_, row.key, &TuneKnob::key) > 0;
      if (is_turned) best_[row.key] = row.least;
    }
    best_seconds_ = seconds(best_);
  }

  // The problem with the other settings as they are in `settings`.
  Result<LayerProblem> problem_with(const TuneSettings& settings, plan::RunPlan& base) {
    ASSIGN_OR_RETURN(base, request_.plan_of(overrides_of(settings)));
    ASSIGN_OR_RETURN(LayerProblem problem, layer_problem(base, request_.memory));
    ASSIGN_OR_RETURN(plan::RunPlan kept, base_of_bound(base, problem));
    Result<std::vector<StepLoad>> loads = step_loads(std::move(kept));
    if (loads.ok()) problem.loads = *std::move(loads);
    return problem;
  }

  // All kept, and as much state cached as any choice of layers leaves room for: no plan has less
  // to do.
  Result<plan::RunPlan> base_of_bound(const plan::RunPlan& base, const LayerProblem& problem) {
    std::int64_t cache_bytes = 0;
    for (const Activations choice : {Activations::keep, Activations::recompute,
                                     Activations::offload, Activations::offload_inputs}) {
      ASSIGN_OR_RETURN(plan::RunPlan run, with_layers(base, all_layers(problem.layers, choice)));
      static_cast<void>(tier_memory(run, request_.memory));
      cache_bytes = std::max(cache_bytes, run.options.state_cache_bytes);
    }
    ASSIGN_OR_RETURN(plan::RunPlan kept,
                     with_layers(base, all_layers(problem.layers, Activations::keep)));
    kept.config.offload.state_cache_bytes = cache_bytes;
    kept.options.state_cache_bytes = cache_bytes;
    return kept;
  }

  Status turn_layers() {
    plan::RunPlan base;
    ASSIGN_OR_RETURN(LayerProblem problem, problem_with(best_, base));
    TuneSettings settings = best_;
    const auto with = [&](const LayerChoices& choices) {
      settings[kActivations] = setting_text(choices);
      return settings;
    };
    problem.fits = [&](const LayerChoices& choices) {
      auto run = with_layers(base, choices);
      return run.ok() && tier_memory(*run, request_.memory).fits();
    };
    problem.seconds = [&](const LayerChoices& choices) -> Result<double> {
      return seconds(with(choices));
    };
    problem.stops = [this] { return stops(); };
    const LayerChoices start =
        layer_choices(base.config.arithmetic.activations, base.layout.layer_count());
    const int simulations =
        std::max(1, static_cast<int>(kShareOfLayers * static_cast<double>(simulations_left())));
    ASSIGN_OR_RETURN(const LayerSearch found, choose_layers(problem, start, simulations));
    is_exhaustive_ = found.is_exhaustive;
    if (found.simplest_seconds < best_seconds_) {
      best_ = with(found.simplest);
      best_seconds_ = found.simplest_seconds;
    }
    return ok_status();
  }

  Status turn_knobs() {
    TuneSettings start = best_;
    ASSIGN_OR_RETURN(const TuneResult found,
                     tune(knobs_, start, [this](const TuneSettings& settings) -> Result<double> {
                       return simulations_left() > 0 ? seconds(settings) : kForEver;
                     }));
    // Its own changes are dropped where they are worth nothing, so the best may be a little longer.
    if (found.best_seconds > best_seconds_) return ok_status();
    if (found.best != best_) is_exhaustive_ = false;
    best_ = found.best;
    best_seconds_ = found.best_seconds;
    return ok_status();
  }

  // Bytes that gain nothing are not moved.
  void prefer_keeping() {
    if (is_held(kActivations)) return;
    TuneSettings keeping = best_;
    keeping[kActivations] = "keep";
    take_unless_longer(keeping, kWorthMoving);
  }

  void drop_what_is_worth_nothing() {
    for (const TuneKnob& knob : knobs_) {
      TuneSettings without = best_;
      without[knob.key] = start_.at(knob.key);
      take_unless_longer(without, kWorthwhile);
    }
  }

  void take_unless_longer(const TuneSettings& settings, double share) {
    const double found = seconds(settings);
    if (found > best_seconds_ * (1 + share)) return;
    if (settings != best_) is_exhaustive_ = false;
    best_ = settings;
    best_seconds_ = found;
  }

  Result<TierPlan> described() {
    TierPlan plan;
    ASSIGN_OR_RETURN(Tried tried, this->tried(best_));
    ASSIGN_OR_RETURN(plan.step, simulate::simulate_step(tried.run));
    plan.run = std::move(tried.run);
    plan.memory = std::move(tried.memory);
    plan.start_seconds = start_seconds_;
    plan.settings = planned_settings(plan.run);
    RETURN_IF_ERROR(add_bound_and_cases(plan));
    ASSIGN_OR_RETURN(plan.stall_seconds, stall_seconds(plan));
    set_activation_bytes(plan);
    plan.simulated_count = simulated_count_;
    plan.is_exhaustive = is_exhaustive_;
    plan.was_stopped = stops();
    return plan;
  }

  std::vector<PlannedSetting> planned_settings(const plan::RunPlan& run) {
    std::vector<PlannedSetting> planned;
    const auto add = [&](const std::string& key, const char* what) {
      PlannedSetting setting{key, best_.at(key), start_.at(key), what};
      if (setting.is_changed()) {
        setting.worth_seconds = worth_of(key);
        setting.value = settings::value_of(run.config, key);  // state_cache as a number
      }
      planned.push_back(std::move(setting));
    };
    if (!is_held(kActivations)) add(kActivations, kWhatActivations);
    for (const PlanKnob& row : plan_knobs()) {
      if (std::ranges::count(knobs_, row.key, &TuneKnob::key) > 0) add(row.key, row.what);
    }
    return planned;
  }

  std::optional<double> worth_of(const std::string& key) {
    TuneSettings without = best_;
    without[key] = start_.at(key);
    const double longer = seconds(without) - best_seconds_;
    if (stops()) return std::nullopt;
    return std::max(0.0, longer);
  }

  Status add_bound_and_cases(TierPlan& plan) {
    plan::RunPlan base;
    ASSIGN_OR_RETURN(const LayerProblem problem, problem_with(best_, base));
    ASSIGN_OR_RETURN(plan::RunPlan kept,
                     with_layers(base, all_layers(problem.layers, Activations::keep)));
    if (kept.config.offload.state_cache_bytes == settings::kAutomatic) {
      kept.config.offload.state_cache_bytes = 0;  // it makes room for activations
    }
    const MemoryUse use = tier_memory(kept, request_.memory).activations();
    const std::int64_t surplus = use.cap_bytes > 0 ? use.peak_bytes - use.cap_bytes : 0;
    plan.bound = lower_bound(problem, surplus);
    if (stops()) return ok_status();
    const std::vector<double> forward = forward_seconds(kept);
    RETURN_IF_ERROR(add_case(plan, "SSDTrain's cut",
                             adaptive_cut(problem.layers, forward, moving_rate(plan.run))));
    const SwapCosts costs = swap_costs(kept, problem);
    return add_case(plan, "Fuyou's amount", swapped_amount(problem.layers, costs));
  }

  Status add_case(TierPlan& plan, const char* name, const LayerChoices& choices) {
    TuneSettings settings = best_;
    settings[kActivations] = setting_text(choices);
    ASSIGN_OR_RETURN(const Tried tried, this->tried(settings));
    plan.special_cases.push_back(
        {name, settings[kActivations], simulated(tried.run), tried.memory.fits()});
    return ok_status();
  }

  // Bytes that leave and come back do so in no time, and layers compute as planned.
  Result<double> stall_seconds(const TierPlan& plan) {
    if (!plan.run.activations.offloads_anything()) return 0.0;
    plan::RunPlan unmoved = plan.run;
    for (auto& blocks : unmoved.activations.layer_blocks) blocks.clear();
    ASSIGN_OR_RETURN(const simulate::SimulatedStep step, simulate::simulate_step(unmoved));
    const auto passes = [](const simulate::SimulatedStep& of) {
      return of.seconds[static_cast<std::size_t>(simulate::Phase::forward)] +
             of.seconds[static_cast<std::size_t>(simulate::Phase::backward)];
    };
    return std::max(0.0, passes(plan.step) - passes(step));
  }

  // The carrier's own account: what has left and is still there or is back early, and the widest
  // layer while it is computed.
  static void set_activation_bytes(TierPlan& plan) {
    const activation::ActivationPlan& activations = plan.run.activations;
    plan.moved_bytes = activations.stays ? 0 : activations.step_bytes();
    std::int64_t widest_bytes = 0;
    for (const LayerId layer : all_ids<LayerId>(plan.run.layout.layer_count())) {
      widest_bytes = std::max(widest_bytes, activations.layer_bytes(layer));
    }
    plan.resident_bytes =
        std::min(activations.step_bytes(), activations.buffer_bytes + widest_bytes);
  }

  // The least that any uniform choice takes, with the settings that take the least.
  Error nothing_fits() {
    if (stops()) {
      return make_error(ErrorCode::cancelled, "stopped before a plan was found that fits");
    }
    std::optional<TierMemory> nearest;
    std::int64_t least_excess = 0;
    use_least_memory();
    for (const Activations choice : {Activations::keep, Activations::recompute,
                                     Activations::offload, Activations::offload_inputs}) {
      TuneSettings settings = best_;
      if (!is_held(kActivations))
        settings[kActivations] = setting_text(all_layers(layers_, choice));
      const auto tried = this->tried(settings);
      if (!tried.ok()) return tried.error();
      if (tried->memory.fits()) {  // then it is the simulation that says no
        const auto step = simulate::simulate_step(tried->run);
        if (!step.ok()) return step.error();
      }
      std::int64_t excess = 0;
      for (const MemoryUse& use : tried->memory.uses) {
        if (!use.fits()) excess += use.peak_bytes - use.cap_bytes;
      }
      if (!nearest || excess < least_excess) {
        nearest = tried->memory;
        least_excess = excess;
      }
    }
    if (nearest->fits()) {
      return make_error(ErrorCode::cancelled,
                        "the search ended before it found a plan that fits: let it simulate more "
                        "steps");
    }
    std::string text = "no plan fits:";
    for (const MemoryUse& use : nearest->uses) {
      if (use.fits()) continue;
      text += fmt::format(
          " the {} memory holds {}{} and the least that was found takes {}: the smallest {} that "
          "would do is {}.",
          use.name, format_bytes(use.cap_bytes), limit_in_brackets(use),
          format_bytes(use.peak_bytes), use.setting, size_text(use.peak_bytes));
    }
    return make_error(ErrorCode::memory, "{} Or lower batch, sequence or subgroup_elements", text);
  }

  const PlanRequest& request_;
  std::vector<TuneKnob> knobs_;
  std::vector<LayerWorth> layers_;  // what they may do alone
  TuneSettings start_;
  TuneSettings best_;
  double start_seconds_ = kForEver;
  double best_seconds_ = kForEver;
  bool is_exhaustive_ = false;
  int simulated_count_ = 0;
  int simulations_end_ = 0;  // of the search that is on
  std::map<TuneSettings, double> known_;
};

}  // namespace

Status check_held_plan(const std::vector<std::string>& held, const std::string& option) {
  std::vector<std::string> keys = {kActivations};
  for (const PlanKnob& row : plan_knobs()) keys.emplace_back(row.key);
  for (const std::string& key : held) {
    if (std::ranges::find(keys, key) != keys.end()) continue;
    return make_error(ErrorCode::config, "{} {}: nothing of that name is planned{}; {} are", option,
                      key, did_you_mean(key, keys), fmt::join(keys, ", "));
  }
  return ok_status();
}

Result<TierPlan> plan_tiers(const PlanRequest& request) { return Planner(request).plan(); }

}  // namespace sluice::tune
